const $ = id => document.getElementById(id);
const page_data = () => JSON.parse($("data").textContent);
const size = bytes => bytes >= 2 ** 30 ? (bytes / 2 ** 30).toFixed(2) + " GiB"
  : bytes >= 2 ** 20 ? (bytes / 2 ** 20).toFixed(1) + " MiB"
  : bytes >= 1024 ? (bytes / 1024).toFixed(bytes >= 10240 ? 0 : 1) + " KiB" : bytes + " B";
const round_size = bytes => size(bytes).replace(/(\.\d*?)0+ /, "$1 ").replace(". ", " ");
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
// Fills a table whose first columns, as many as `texts`, are no figures. Hides its section if there are no rows.
const fill = (place, head, rows, texts) => {
  if ($(place + "_at")) $(place + "_at").hidden = !rows.length;
  const made = table(place, head, rows);
  for (const row of $(place).rows) [...row.cells].forEach((cell, i) => cell.classList.toggle("text", i < texts));
  return made;
};
const figures = shown => {
  for (const [what, value] of shown) {
    const box = element("div", $("figures"));
    element("b", box, value);
    box.append(what);
  }
};
