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
