// Questions to the process. The token stays in this tab, and goes in a header alone.

const KEY = "calque-token";

export class Locked extends Error {}

export const keep = (token) => (token ? sessionStorage.setItem(KEY, token) : sessionStorage.removeItem(KEY));
export const hasToken = () => sessionStorage.getItem(KEY) !== null;

// A header is Latin-1: the token's bytes go as they are in UTF-8.
function headers() {
  const token = sessionStorage.getItem(KEY);
  return token ? { Authorization: `Bearer ${String.fromCharCode(...new TextEncoder().encode(token))}` } : {};
}

async function fetched(path, options) {
  try {
    return await fetch(path, { ...options, headers: { ...headers(), ...options.headers }, cache: "no-store" });
  } catch {
    throw new Error("calque does not answer. Is `calque run` running?");
  }
}

async function ask(path, options) {
  const answer = await fetched(path, options);
  const content = await answer.json().catch(() => ({ error: `The answer was ${answer.status}.` }));
  if (answer.status === 401) throw new Locked(hasToken() ? "This token does not open the page." : "");
  if (!answer.ok) throw new Error(content.error);
  return content;
}

export const get = (name, query = {}) => ask(`api/${name}?${new URLSearchParams(query)}`, {});

export const post = (name, body) =>
  ask(`api/${name}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

// A link can't send a token: where one is kept, the answer is fetched with it and saved under the name that it has.
export async function save(link) {
  const answer = await fetched(link.href, {});
  if (!answer.ok) throw new Error(`The answer was ${answer.status}.`);
  const named = /filename="([^"]+)"/.exec(answer.headers.get("Content-Disposition") ?? "");
  const address = URL.createObjectURL(await answer.blob());
  const saving = Object.assign(document.createElement("a"), { href: address, download: named?.[1] ?? link.dataset.save });
  saving.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}
