// Questions to the process. The token stays in this tab, and goes in a header alone.

const KEY = "calque-token";

export class Locked extends Error {}

export const keep = (token) => (token ? sessionStorage.setItem(KEY, token) : sessionStorage.removeItem(KEY));

// A header is Latin-1: the token's bytes go as they are in UTF-8.
function headers() {
  const token = sessionStorage.getItem(KEY);
  return token ? { Authorization: `Bearer ${String.fromCharCode(...new TextEncoder().encode(token))}` } : {};
}

async function ask(path, options) {
  let answer;
  try {
    answer = await fetch(path, { ...options, headers: { ...headers(), ...options.headers }, cache: "no-store" });
  } catch {
    throw new Error("calque does not answer. Is `calque run` running?");
  }
  const content = await answer.json().catch(() => ({ error: `The answer was ${answer.status}.` }));
  if (answer.status === 401) throw new Locked(sessionStorage.getItem(KEY) ? "This token does not open the page." : "");
  if (!answer.ok) throw new Error(content.error);
  return content;
}

export const get = (name, query = {}) => ask(`api/${name}?${new URLSearchParams(query)}`, {});

export const post = (name, body) =>
  ask(`api/${name}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
