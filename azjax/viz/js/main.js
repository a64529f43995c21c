// Entry points: a page opened from disk, and a notebook widget of anywidget.

import { h, replace } from "./dom.js";
import { play } from "./play.js";
import { proof } from "./proof.js";
import { explorer } from "./explorer.js";
import { keepInAddress, Place } from "./place.js";

/** The components of pages by their names; a page may add some. */
export const COMPONENTS = { explorer, play, proof };
const THEMES = ["system", "light", "dark"];
const THEME_CLASSES = {
  dark: ["dark", "dark-theme", "vscode-dark", "vscode-high-contrast"],
  light: ["light", "light-theme", "vscode-light", "vscode-high-contrast-light"],
};

/** Fills the components of a page from the JSON in it. */
export function mountPage(document) {
  const data = JSON.parse(document.getElementById("azjax-data").textContent);
  const place = new Place();
  for (const root of document.querySelectorAll(".az-component")) {
    COMPONENTS[root.dataset.kind](root, data[root.dataset.number], place);
  }
  keepInAddress(place, document.defaultView);
  document.querySelector("h1").after(themeSwitch(document.documentElement));
  document.addEventListener("click", scrollToSection);
}

/** Scrolls to the section of a link; the address stays, as it contains the page's position. */
function scrollToSection(event) {
  const link = event.target.closest("a[href^='#']");
  if (!link) return;
  event.preventDefault();
  const section = document.getElementById(link.getAttribute("href").slice(1));
  section.scrollIntoView();
  section.querySelector("h2").focus({ preventScroll: true });
}

/** A choice of theme: that of the system, light or dark. */
function themeSwitch(target) {
  const choose = (event) => {
    if (event.target.value === "system") delete target.dataset.theme;
    else target.dataset.theme = event.target.value;
  };
  const options = THEMES.map((name) => h("option", { value: name }, name));
  const select = h("select.az-theme", { on: { change: choose } }, options);
  return h("label.az-theme-label", "theme ", select);
}

/** Applies the theme of JupyterLab, VS Code or marimo, which a shadow root does not inherit. */
function followTheme(element) {
  const { body, documentElement } = element.ownerDocument;
  const apply = () => {
    const names = [...body.classList, ...documentElement.classList];
    const jupyter = { true: "light", false: "dark" }[body.dataset.jpThemeLight];
    const named = ["dark", "light"].find((theme) => names.some((name) => THEME_CLASSES[theme].includes(name)));
    const theme = jupyter ?? named;
    if (theme) element.dataset.theme = theme;
    else delete element.dataset.theme;
  };
  apply();
  const observer = new MutationObserver(apply);
  for (const host of [body, documentElement]) observer.observe(host, { attributes: true });
  return () => observer.disconnect();
}

/** Draws a widget; anywidget calls it once for every view. */
function render({ model, el }) {
  const root = h("div.az-component");
  replace(el, root);
  el.classList.add("azjax");
  COMPONENTS[model.get("kind")](root, model.get("data"), new Place());
  return followTheme(el); // anywidget calls the result when the view is removed.
}

export default { render };
