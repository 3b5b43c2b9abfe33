// Runs the script of a page of trainer report without a browser: draw_page.js PAGE.html prints JSON with the charts
// that it makes, and with the document that it builds, as HTML. The document knows only what the script needs, and has
// no innerHTML: what would read HTML fails. Drawing is Chart.js's part; here its questions (texts of ticks and of
// curves under the mouse, marks, legends) are asked once for each chart.
"use strict";

const fs = require("fs");
const vm = require("vm");

const escaped = (text) => text.replace(/[&<>"]/g, (c) => ({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})[c]);

class Style {
  setProperty(name, value) { this[name] = value; }
}

// What a canvas draws into: nothing. Pixels of pictures are kept.
const context = () => ({
  save() {}, restore() {}, beginPath() {}, moveTo() {}, lineTo() {}, stroke() {}, setLineDash() {}, fillText() {},
  createImageData: (width, height) => ({data: new Uint8ClampedArray(4 * width * height)}),
  putImageData(image) { this.picture = image.data; },
});

class Element {
  constructor(name) {
    this.classList = {toggle() {}};
    Object.assign(this,
      {name, attributes: {}, children: [], listeners: {}, style: new Style(), parentElement: null, hidden: false});
  }
  setAttribute(name, value) { this.attributes[name] = String(value); }
  append(...children) {
    for (const child of children) {
      if (child instanceof Element) child.parentElement = this;
      this.children.push(child instanceof Element ? child : String(child));
    }
  }
  replaceChildren(...children) {
    this.children = [];
    this.append(...children);
  }
  addEventListener(type, listener) { this.listeners[type] = listener; }
  set open(value) { this.attributes.open = value ? "" : undefined; }
  get textContent() { return this.children.map((each) => each instanceof Element ? each.textContent : each).join(""); }
  set textContent(text) { this.replaceChildren(text); }
  set innerHTML(text) { throw new Error("innerHTML is set"); }
  insertAdjacentHTML() { throw new Error("HTML is read"); }
  getContext() { return (this.context ||= context()); }
  all(name) {
    return this.children.filter((each) => each instanceof Element)
      .flatMap((each) => [...each.name === name ? [each] : [], ...each.all(name)]);
  }
  html() {
    const attributes = Object.entries(this.attributes).filter(([, value]) => value !== undefined);
    const style = Object.entries(this.style).map(([name, value]) => `${name}:${value}`).join(";");
    if (style) attributes.push(["style", style]);
    const head = `<${this.name}${attributes.map(([name, value]) => ` ${name}="${escaped(value)}"`).join("")}>`;
    const inside = this.children.map((each) => each instanceof Element ? each.html() : escaped(each)).join("");
    return `${head}${inside}</${this.name}>`;
  }
}

const expect = (right, ...words) => {
  if (!right) throw new Error(words.join(" "));
};

const expect_name = (text, where) => expect(typeof text === "string", where, "has no name:", text);
const expect_text = (text, where) =>
  expect(typeof text === "string" && !/NaN|undefined|null|Infinity/.test(text), where, "has the text", text);

// Asks what Chart.js asks.
class Chart {
  constructor(canvas, {type, data, options, plugins = []}) {
    expect(canvas instanceof Element && canvas.name === "canvas", "a chart is drawn on a canvas");
    Object.assign(this, {data, visible: data.datasets.map(() => true)});
    const told = {type, datasets: JSON.parse(JSON.stringify(data.datasets)), labels: data.labels, axes: {},
                  marks: [], options};
    Chart.drawn.set(canvas, [...Chart.drawn.get(canvas) || [], told]);
    for (const {label, data: points, borderDash = []} of data.datasets) {
      expect_name(label, "a series");
      expect(Array.isArray(borderDash), label, "has dashes that are no list");
      for (const point of points) {
        for (const value of type === "bar" ? [point] : [point.x, point.y])
          expect(value === null || typeof value === "number", label, "has a point", JSON.stringify(point));
      }
    }
    (data.labels || []).forEach((label) => expect_name(label, "a bar"));
    const ticks = [{value: 0}, {value: 0.25}, {value: 12345}];
    for (const [name, {ticks: {callback}, afterBuildTicks}] of Object.entries(options.scales)) {
      const made = {ticks};
      if (afterBuildTicks) afterBuildTicks(made);
      told.axes[name] = callback ? made.ticks.map(({value}, i) => callback(value, i, made.ticks)) : [];
      told.axes[name].flat().forEach((text) => expect_text(text, "a tick"));
    }
    for (const items of [[], ...data.datasets.map((_, datasetIndex) => [{datasetIndex}])])
      options.onHover({}, items, this);
    const {title, label} = options.plugins.tooltip.callbacks;
    const item = {dataset: {label: "a"}, datasetIndex: 0, dataIndex: 0, parsed: {x: 2, y: 0.5}, raw: 0.5};
    told.touched = [...title ? [title([item])] : [], label(item)];
    told.touched.forEach((text) => expect_text(text, "a tooltip"));
    const area = {left: 0, right: 100, top: 0, bottom: 100};
    const ctx = {...context(), fillText(text, x) { told.marks.push([text, x, this.textAlign]); }};
    plugins.forEach((each) =>
      each.afterDatasetsDraw({ctx, chartArea: area, scales: {x: {getPixelForValue: (value) => 2 * value}}}));
  }
  setDatasetVisibility(series, visible) { this.visible[series] = visible; }
  update() {}
  resize() {}
  destroy() {}
}
Chart.drawn = new Map();
Chart.defaults = {font: {}};

const check_legends = (main) => {
  for (const button of main.all("button")) {
    expect_name(button.textContent, "a legend");
    const expect_pressed = (pressed) =>
      expect(button.attributes["aria-pressed"] === pressed, button.textContent, "is not", pressed);
    const [before, after] = button.attributes["aria-pressed"] === "true" ? ["true", "false"] : ["false", "true"];
    for (const pressed of [after, before]) {
      button.listeners.click();
      expect_pressed(pressed);
    }
  }
};

const check_figures = (figures) => {
  for (const figure of figures) {
    expect(figure.all("canvas").every((canvas) => Chart.drawn.has(canvas)), "a chart is not drawn");
    expect(figure.all("table").length === 1, "a chart has no table");
  }
};

// The page as text: its charts, its title, and the element of its content.
const draw = (page) => {
  const scripts = [...page.matchAll(/<script([^>]*)>([\s\S]*?)<\/script>/g)];
  expect(scripts.length === 3 && scripts[0][1].includes('id="data"'),
    "the page has data, Chart.js and its script, and no more:", scripts.length);
  const known = Object.fromEntries([...page.matchAll(/<(\w+)[^>]* id="(\w+)"/g)]
    .map(([, name, id]) => [id, new Element(name)]));
  known.data.textContent = scripts[0][2];
  new Element("label").append(known.log);
  let x = "step";
  known.axis.querySelector = () => ({value: x});
  const listeners = {};
  const document = {
    documentElement: new Element("html"), title: "",
    getElementById: (id) => known[id],
    createElement: (name) => new Element(name),
    querySelectorAll: () => known.main.all("details"),
  };
  const world = vm.createContext({
    document, Chart, atob,
    getComputedStyle: () => ({getPropertyValue: (name) => name}),
    matchMedia: () => ({addEventListener: (type, listener) => { listeners.dark = listener; }}),
    addEventListener: (type, listener) => { listeners[type] = listener; },
  });
  vm.runInContext(scripts[2][2], world, {filename: "page.js"});
  for (x of ["samples", "seconds", "step"]) known.axis.listeners.change();
  known.log.checked = true;
  for (const event of ["dark", "beforeprint", "afterprint"]) listeners[event]();
  check_legends(known.main);
  expect(known.main.all("script").length + known.main.all("img").length === 0, "a name became an element");
  const [worst, figures] = [true, false].map((worst) =>
    known.main.all("figure").filter((each) => (each.attributes.class === "worst") === worst));
  check_figures(figures);
  const charts = JSON.parse(
    vm.runInContext('JSON.stringify(make_charts(JSON.parse(document.getElementById("data").textContent)))', world));
  expect(charts.length === figures.length, "a chart is in no section");
  // By steps, samples and seconds, and once more by steps.
  const all_drawn = figures.map((figure) => Chart.drawn.get(figure.all("canvas")[0]));
  const drawn = JSON.parse(JSON.stringify(all_drawn.map((each) => each.slice(0, 4).map(({datasets}) => datasets))));
  // Of the colours the red ones: grey pictures have no other.
  const pictures = worst.map((each) => [...each.all("canvas")[0].context.picture].filter((level, i) => i % 4 === 0));
  const values = JSON.parse(vm.runInContext(`{
    const data = JSON.parse(document.getElementById("data").textContent);
    prepare(data);
    JSON.stringify(data.runs.map((run) => ({
      result: result_of(run), mean_staleness: mean_staleness(run),
      least_recognised: run.confusion ? least_recognised(run.confusion) : null,
    })));
  }`, world));
  return {title: document.title, charts, values, drawn, all_drawn, main: known.main, pictures};
};

module.exports = {draw};

if (require.main === module) {
  const {title, charts, values, main, pictures} = draw(fs.readFileSync(process.argv[2], "utf8"));
  console.log(JSON.stringify({title, charts, values, html: main.html(), pictures}));
}
