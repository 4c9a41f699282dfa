const $ = id => document.getElementById(id);
const page_data = () => JSON.parse($("data").textContent);
const size = bytes => bytes >= 2 ** 30 ? (bytes / 2 ** 30).toFixed(2) + " GiB"
  : bytes >= 2 ** 20 ? (bytes / 2 ** 20).toFixed(1) + " MiB"
  : bytes >= 1024 ? (bytes / 1024).toFixed(bytes >= 10240 ? 0 : 1) + " KiB" : bytes + " B";
const seconds = s => s >= 100 ? s.toFixed(0) + " s" : s.toFixed(2) + " s";
const element = (name, parent, text, kind) => {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return parent.appendChild(made);
};
const table = (place, head, rows) => {
  const add = (cells, kind) => {
    const row = $(place).insertRow();
    for (const cell of cells) element(kind, row, cell);
    return row;
  };
  add(head, "th");
  return rows.map(cells => add(cells, "td"));
};
const figures = shown => {
  for (const [what, value] of shown) {
    const box = element("div", $("figures"));
    element("b", box, value);
    box.append(what);
  }
};
