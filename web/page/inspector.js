// The page: shows the views of the model that is open.

import { AddressState, rememberOpened, stateOfAddress, wasOpenedHere } from "./address_state.js";
import { byId, element } from "./basics.js";
import { CheckView } from "./check_view.js";
import { Client, isCancelled } from "./client.js";
import { Commands } from "./commands.js";
import { CompareView } from "./compare_view.js";
import { showFormChoice } from "./form_choice.js";
import { listenToKeys, listenToTheme, switchTheme } from "./keys.js";
import { showCards } from "./model_cards.js";
import { ModuleView } from "./module_view.js";
import { showIncomplete } from "./incomplete.js";
import { exampleFile } from "./example.js";
import { IF_QUANTISED } from "./limits.js";
import { cut, nameText } from "./names.js";
import { filesOfDrop, handleOfDrop } from "./openable.js";
import { Opening } from "./opening.js";
import { OverviewView } from "./overview_view.js";
import { isOneFile, ownScript } from "./own_files.js";
import { remember, showRecent } from "./recent.js";
import { holdServer, isServed, isServedHere } from "./served.js";
import { closeAnySheet, closeSheet } from "./sheet.js";
import { cancelWork, clearFailure, onReopen, say, showFailure } from "./status.js";
import { Tabs } from "./tabs.js";
import { TensorView } from "./tensor_view.js";
import { showMetadata, showVocabulary } from "./text_views.js";
import { warmPage } from "./warm_page.js";
import { complete, painted } from "./whole_model.js";

const client = new Client();
const opening = new Opening(client, { opened, choosing: showStart, secondForm });
const address = new AddressState(went);
let shown = null; // { model, what, tabs, overview, tensors, compare }

// ---- opening

async function opened(model, what) {
  const isAddress = typeof what.input === "string";
  if (isAddress && !isServed(what.given)) remember({ key: what.given, name: what.name, address: what.given });
  else if (what.handle) remember({ key: `file ${what.name}`, name: what.name, handle: what.handle });
  if (!what.isSecond) show(model, what);
  else if (shown) await compareWith(model, what);
}

// Two models are compared by decoded values, unless the first one is quantised and shown as stored.
function secondForm() {
  return shown?.model.mayBeQuantised && !shown.model.isDecoded ? false : IF_QUANTISED;
}

// Show the model that is open, and the one that it is compared with, as stored or decoded.
async function changeForm(decodes) {
  const { what, second } = shown;
  const view = shown.tabs.current;
  const isFile = second && typeof second.input !== "string";
  if (!(await opening.use({ ...what, decodes }))) {
    showFormChoice(shown.model, changeForm);
    return;
  }
  byId(decodes ? "form-decoded" : "form-stored")?.focus({ preventScroll: true });
  if (isFile) await opening.use({ ...second, decodes: undefined });
  else if (view === "compare") shown.tabs.select("compare");
}

async function compareWith(model, what) {
  shown.second = what;
  shown.tabs.select("compare");
  const b = typeof what.input === "string" ? what.given : null;
  if (b) rememberOpened(b);
  address.set({ b }, false);
  const differences = await shown.compare.compare(model);
  if (differences) shown.overview.compared(differences);
}

let choosesSecond = false; // the file that is being chosen is B of a comparison

function choose(isSecond, inputId = "file-input") {
  choosesSecond = isSecond;
  byId(inputId).value = ""; // the same file may be chosen again
  byId(inputId).click();
}

// ---- showing

function showStart() {
  document.body.classList.remove("has-model");
  byId("start").hidden = false;
  byId("model").hidden = true;
  byId("open-another").hidden = true;
  byId("candidates").hidden = true;
  byId("back").hidden = !shown;
  byId("file-name").textContent = "";
  document.title = "Heft – model inspector";
  byId("choose-file").focus();
  showRecent(RECENT);
}

const RECENT = {
  address: (text) => opening.address(text),
  file: (file, handle) => opening.files([file], { handle }),
  failed: (e) => showFailure({ status: "io", rule: "web/read", message: String(e.message || e) }),
};

function viewsOf(m) {
  const worst = m.notices.some((f) => f.severity === "fault") ? "fault" : "warning";
  const badge = m.notices.length ? { kind: worst, text: String(m.notices.length) } : null;
  const commands = m.commands;
  return [
    { id: "overview", title: "Overview", show: () => shown.overview.show() },
    { id: "tensors", title: "Tensors" },
    {
      id: "modules",
      title: "Modules",
      show: () =>
        new ModuleView(client, m, {
          chosen: (found) => showModule(found),
          tensor: (id) => showTensor(id),
        }),
    },
    { id: "metadata", title: "Metadata", show: () => showMetadata(client, m) },
    ...(m.hasVocabulary
      ? [{ id: "vocabulary", title: "Vocabulary", show: () => showVocabulary(client, m) }]
      : []),
    {
      id: "checks",
      title: "Checks",
      badge,
      show: () =>
        (shown.checks = new CheckView(byId("panel-checks"), client, m, {
          commands,
          verified: () => shown.overview.changed(),
        })),
    },
    { id: "compare", title: "Compare" },
  ];
}

function showModule(found) {
  shown.tabs.select("tensors");
  shown.tensors.within(found);
  shown.tensors.table.view.focus();
}

function showTensor(id) {
  shown.tabs.select("tensors");
  shown.tensors.chooseId(id);
  byId("detail").focus();
}

function showSearch(text) {
  shown.tabs.select("tensors");
  shown.tensors.search(text);
  shown.tensors.table.view.focus();
}

function showChecks(verifies) {
  shown.tabs.select("checks");
  if (verifies) shown.checks.verify(false);
}

function clearPanels() {
  for (const id of ["tensor-table", "module-table", "metadata-table", "vocabulary-table"]) byId(id).replaceChildren();
  document.querySelectorAll(".sheet").forEach(closeSheet);
  byId("detail").replaceChildren(
    element("p", { class: "quiet" }, "Choose a tensor to see its values."),
  );
}

function showModel(m) {
  document.body.classList.add("has-model");
  byId("start").hidden = true;
  byId("model").hidden = false;
  byId("model").dataset.id = m.id;
  byId("open-another").hidden = false;
  byId("file-name").textContent = cut(nameText(m.shown));
  document.title = `${cut(nameText(m.shown), 80)} – Heft`;
}

function closeShown() {
  if (!shown) return;
  shown.tensors.close();
  shown.overview.close();
  client.ask("close", { model: shown.model.id });
  if (shown.compare.other) client.ask("close", { model: shown.compare.other.id });
}

// The view that is shown first: that of the address, or the overview.
function firstView(views) {
  const { view } = address.state;
  return views.some((v) => v.id === view) && view !== "compare" ? view : "overview";
}

function show(m, what) {
  const again = () => opening.use(what);
  closeShown();
  m.commands = new Commands(m.source);
  what.key ??= m.id;
  showModel(m);
  clearPanels();
  showForm(m);
  shown = { model: m, what };
  m.whole = m.columns ? Promise.resolve(true) : finish(m, again);
  const isFile = typeof what.input !== "string";
  shown.overview = new OverviewView(client, m, {
    isLocal: isFile || isServedHere(what.given),
    commands: m.commands,
    to: { tensor: showTensor, search: showSearch, checks: showChecks },
  });
  shown.tensors = new TensorView(client, m, (name) => tensorShown(name));
  const views = viewsOf(m);
  const first = firstView(views);
  address.opened(what.key, isFile ? null : what.given, first, m.isDecoded ? "decoded" : undefined);
  shown.tabs = new Tabs(views, first, (view) => address.set({ view }));
  shown.compare = new CompareView(byId("panel-compare"), client, m, {
    choose: (text) => (text ? opening.address(text, true) : choose(true)),
    tensor: showTensor,
    decode: () => changeForm(true),
    again: (decodes) => opening.use({ ...shown.second, decodes }),
  });
  showIncomplete(m, what, (changed) => opening.use(changed));
  measure(m);
  if (first === "tensors") shown.tensors.table.view.focus({ preventScroll: true });
  else byId("content").focus({ preventScroll: true });
  const { b } = address.state;
  if (b && (wasOpenedHere(b) || isServed(b))) opening.address(b, true); // the page was loaded again, or is served
  if (address.state.tensor) shown.tensors.chooseName(address.state.tensor);
  say(`${cut(nameText(m.shown))}: ${m.format}, ${m.count.toLocaleString("en")} ${m.count === 1 ? "tensor" : "tensors"}`);
}

function showForm(m) {
  showCards(m);
  m.commands.showsStored(!m.isDecoded && m.mayBeQuantised);
  showFormChoice(m, changeForm);
}

// Ask for the columns behind the first paint; return whether the model has them.
async function finish(m, again) {
  await painted();
  try {
    await complete(client, m);
  } catch (e) {
    const actions = [{ title: "Open it again", act: again }];
    if (shown.model === m && !isCancelled(e)) showFailure(e, actions, cut(nameText(m.shown)));
    return false;
  }
  if (shown.model !== m) return false;
  showForm(m);
  shown.tensors.arrived();
  return true;
}

// Times for tests and the curious: performance.getEntriesByName("heft-first-row").
function measure(m) {
  painted().then(() => {
    const start = Math.max(0, m.lastByte - performance.timeOrigin);
    performance.measure("heft-first-row", { start, end: performance.now() });
    performance.measure("heft-index", { start, end: m.opened - performance.timeOrigin });
  });
}

// ---- the state in the address

let lastStep = 0;

// Tensors that are passed quickly are one step.
function tensorShown(name) {
  const QUICK = 1500; // milliseconds
  const isStep = performance.now() - lastStep > QUICK;
  lastStep = performance.now();
  address.set({ view: "tensors", tensor: name }, isStep);
}

// The user went back or forward.
function went(state, model) {
  if (shown && model === shown.what.key) {
    if ((state.as === "decoded") !== shown.model.isDecoded) {
      changeForm(state.as === "decoded");
      return;
    }
    showModel(shown.model);
    if (state.view) shown.tabs.select(state.view);
    if (state.tensor && state.view === "tensors") shown.tensors.chooseName(state.tensor);
  } else if (state.open && (wasOpenedHere(state.open) || isServed(state.open))) {
    opening.address(state.open, false, state.as === "decoded");
  } else {
    showStart();
    if (model !== null) say("The file of this step was closed. Choose it again.");
  }
}

// A link fills in an address; nothing is fetched until the user says so.  A page that is loaded again
// opens what the user has opened in it before, and one that `heft view` serves what the command was given.
function fillFromLink() {
  const { open, as } = stateOfAddress();
  holdServer(isServed(open));
  if (isServed(open)) return void opening.address(open, false, as === "decoded");
  if (!open || !/^(https?|hf):/.test(open)) return;
  byId("address").value = open;
  if (wasOpenedHere(open)) opening.address(open, false, as === "decoded");
  else byId("address").focus();
}

// ---- events

function listenToDrops() {
  const isFiles = (e) => [...(e.dataTransfer?.types || [])].includes("Files");
  document.addEventListener("dragover", (e) => {
    if (!isFiles(e)) return;
    e.preventDefault();
    document.body.classList.add("dragging");
  });
  for (const name of ["dragleave", "drop", "dragend"])
    document.addEventListener(name, () => document.body.classList.remove("dragging"));
  document.addEventListener("drop", async (e) => {
    if (!isFiles(e)) return;
    e.preventDefault();
    const isSecond = Boolean(shown) && shown.tabs.current === "compare";
    const handle = handleOfDrop(e.dataTransfer);
    try {
      opening.files(await filesOfDrop(e.dataTransfer), { isSecond, isDrop: true, handle: await handle });
    } catch (error) {
      const message = String(error.message || error);
      showFailure({ status: "io", rule: "web/read", message });
    }
  });
}

const tabKey = (n) => ({
  key: String(n),
  title: "",
  act: () => shown && shown.tabs.select(shown.tabs.views[n - 1]?.id),
});

function focusSearch() {
  const field = [...document.querySelectorAll(".panel:not([hidden]) input[type=search]")].find(
    (x) => x.offsetParent,
  );
  if (!field) return false;
  field.focus();
  field.select();
  return true;
}

const SHORTCUTS = [
  { key: "o", title: "Choose a file", act: () => choose(false) },
  { key: "f", title: "Choose a folder", act: () => choose(false, "folder-input") },
  {
    key: "a",
    title: "Give an address",
    act: () => (shown ? openAnother() : null, byId("address").focus()),
  },
  { key: "/", title: "Search in the view", act: focusSearch },
  {
    key: "1",
    shown: "1 – 7",
    title: "Overview, Tensors, Modules, …",
    act: () => shown && shown.tabs.select(shown.tabs.views[0].id),
  },
  {
    key: "c",
    title: "Compare with a second file",
    act: () => shown && shown.tabs.select("compare"),
  },
  {
    key: "d",
    title: "Tensors of a quantised model: as stored, decoded",
    act: () => shown && !byId("form").hidden && changeForm(!shown.model.isDecoded),
  },
  { key: "v", title: "Verify", act: () => shown && showChecks(true) },
  { key: "t", title: "Colours: system, light, dark", act: switchTheme },
  {
    key: "Escape",
    shown: "Esc",
    title: "Cancel what is running; close a message",
    act: () => cancelWork() || closeAnySheet() || (!byId("failure").hidden && (clearFailure(), true)),
  },
  { key: "?", title: "This list", act: () => byId("help").showModal() },
  { key: "arrows", shown: "↑ ↓ Home End", title: "In a table: go from row to row; in the layers: from cell to cell" },
  {
    key: "enter",
    shown: "Enter",
    title: "In a table: go to the details; in the tree: show the tensors of a module",
  },
  { key: "tree", shown: "→ ←", title: "In the tree: open and close a module" },
  ...[2, 3, 4, 5, 6, 7].map(tabKey),
];

function openAnother() {
  cancelWork();
  showStart();
}

function listen() {
  byId("choose-file").addEventListener("click", () => choose(false));
  byId("choose-folder").addEventListener("click", () => choose(false, "folder-input"));
  byId("open-another").addEventListener("click", openAnother);
  for (const input of [byId("file-input"), byId("folder-input")])
    input.addEventListener("change", () => opening.files([...input.files], { isSecond: choosesSecond }));
  byId("try-example").addEventListener("click", () => opening.files([exampleFile()]));
  // Files that the system opens with the installed page.
  window.launchQueue?.setConsumer(async ({ files }) => {
    const list = await Promise.all((files || []).map((handle) => handle.getFile()));
    opening.files(list, { isDrop: true, handle: list.length === 1 ? files[0] : undefined });
  });
  byId("back").addEventListener("click", () => showModel(shown.model));
  byId("progress-cancel").addEventListener("click", cancelWork);
  byId("address-form").addEventListener("submit", (e) => {
    e.preventDefault();
    const text = byId("address").value;
    const { open, as } = stateOfAddress(); // a link that was filled in
    opening.address(text, false, text === open && as === "decoded");
  });
  onReopen(() => changeForm(shown.model.isDecoded));
  listenToDrops();
  listenToKeys(SHORTCUTS);
  listenToTheme();
}

listen();
showRecent(RECENT);
fillFromLink();
warmPage(() => !shown);
// heft view has no service worker: a page that it served would stay at its port.
if (!isOneFile && !isServed(stateOfAddress().open) && "serviceWorker" in navigator && window.isSecureContext)
  navigator.serviceWorker.register(ownScript("sw.js")).catch(() => {}); // works without, but not offline
