"use strict";
const form = document.querySelector("form");
const rated = document.querySelector("output");
let saved = true;

function count() {
  const all = form.querySelectorAll("fieldset.dimension").length;
  rated.textContent = form.querySelectorAll("input:checked").length + " / " + all;
}

function table() {
  const names = form.dataset.dimensions.split(" ");
  const lines = [["code", ...names].join(",")];
  for (const answer of form.querySelectorAll("section[data-code]")) {
    const code = answer.dataset.code;
    const cells = names.map((name) => form.querySelector(`input[name="${code} ${name}"]:checked`)?.value ?? "");
    lines.push([code, ...cells].join(","));
  }
  return lines.join("\n") + "\n";
}

// What a table saved by this page holds, and nothing else: its cells are codes and numbers without quotation marks.
async function goOn(file) {
  const [head, ...lines] = (await file.text()).trim().split("\n").map((line) => line.split(","));
  for (const [code, ...cells] of lines) {
    cells.forEach((value, at) => {
      const options = form.elements.namedItem(`${code} ${head[at + 1]}`);
      if (options && value) options.value = value;
    });
  }
  count();
}

document.querySelector("input[type=file]").addEventListener("change", (event) => goOn(event.target.files[0]));
form.addEventListener("change", () => { saved = false; count(); });
form.addEventListener("submit", (event) => {
  event.preventDefault();
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([table()], { type: "text/csv" }));
  link.download = form.dataset.file;
  link.click();
  saved = true;
});
addEventListener("beforeunload", (event) => { if (!saved) event.preventDefault(); });
count();
