// What a person may have done, each after a question.

import { h } from "./dom.js";
import { hasToken, keep, Locked, post } from "./api.js";

export const ACTIONS = {
  pause: ["Pause", "It stays as it is until somebody lets it go on. This lasts across restarts."],
  resume: ["Resume", "It goes on from where it was held back."],
  release: ["Release", "What was set aside is read again, exactly, while the stream goes on."],
  "release-drops": ["Release drops", "What the source lost without an event is compared again, and dropped at the target where it is still gone."],
  verify: ["Verify", "The target is compared with the source, names and sizes of files included. Nothing is changed."],
  repair: ["Repair", "The target is compared with the source, and what differs is read again."],
};

export function actionButtons(names, target, table, mayAct) {
  return h("div", { class: "buttons" }, names.map((name) =>
    h("button", { type: "button", "data-action": name, "data-target": target, "data-table": table, disabled: !mayAct,
      title: mayAct ? null : "Actions need [serve] token_env or token_file" }, ACTIONS[name][0])));
}

export const notAllowed = (overview) => overview.may_act ? null :
  h("p", { class: "small dim" }, "Actions need a token: write ", h("code", {}, "token_env"), " or ", h("code", {}, "token_file"), " below ", h("code", {}, "[serve]"), ".");

export const actionsOf = (button) => ({ action: button.dataset.action, target: button.dataset.target, table: button.dataset.table });

const tokenInput = () => h("input", { id: "token", type: "password", autocomplete: "current-password", required: true });

export function actionDialog({ action, target, table }, done) {
  const dialog = document.getElementById("dialog");
  const [label, text] = ACTIONS[action];
  const problem = h("p", { class: "problem", role: "alert" });
  const token = tokenInput();
  const field = h("label", {}, "Token, which actions need", token);
  const go = h("button", { class: "primary" }, label);
  const cancel = h("button", { type: "button" }, "Cancel");
  const form = h("form", {}, h("p", {}, text), hasToken() ? null : field, problem, h("div", { class: "buttons" }, go, cancel));
  dialog.replaceChildren(h("h2", { id: "dialog-title" }, `${label} ${table ? `${table} at ${target}` : target}?`), form);
  cancel.addEventListener("click", () => dialog.close());
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    go.disabled = true;
    if (field.isConnected) keep(token.value.trim());
    try {
      await post("actions", { action, target, tables: table ? [table] : [] });
      dialog.close();
      done();
    } catch (error) {
      if (error instanceof Locked) {
        keep(null);
        problem.before(field);
      }
      problem.textContent = error.message || "Give the token.";
      go.disabled = false;
    }
  });
  dialog.showModal();
  cancel.focus();
}

export function signIn(problem, done) {
  const input = tokenInput();
  const form = h("form", { class: "card sign-in" },
    h("h1", {}, "This page needs a token"),
    h("p", { class: "dim" }, "It is the one that ", h("code", {}, "[serve] token_env"), " or ", h("code", {}, "token_file"),
      " names. This tab alone keeps it."),
    h("label", {}, "Token", input), h("p", { class: "problem", role: "alert" }, problem),
    h("button", { class: "primary" }, "Open"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    keep(input.value.trim());
    form.remove();
    done();
  });
  return form;
}
