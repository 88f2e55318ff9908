// The one script. Pages work without it; it makes them quicker. Elements ask for what they need by data-* attributes:
//   <html data-idle="900">        after so many seconds without a key or a click in any tab the login ends and the screen is cleared
//   <html data-user="wu">         whose page it is: cleared too when another tab signs out, or somebody else in
//   <html data-form-page="/...">  where the form is that led to this page: what Back and loading again show
//   <form data-confirm="...">     asks before it is sent, and names what is chosen in it
// Text from the server enters a page through one Trusted Types policy, and only what this server rendered.
"use strict";
(() => {
  const policy = window.trustedTypes ? window.trustedTypes.createPolicy("localmed", { createHTML: (text) => text }) : { createHTML: (text) => text };
  const localmed = (window.localmed = { put: (element, html) => { element.innerHTML = policy.createHTML(html); localmed.wire(element); }, wirings: [] });
  localmed.wire = (root) => { for (const wiring of localmed.wirings) wiring(root); };

  // A page that comes back from the browser's memory may be another user's: ask the server again.
  window.addEventListener("pageshow", (event) => { if (event.persisted) window.location.reload(); });
  // An answer has an address of its own, though it came to the page of the question: Back leads to the page before.
  let shownPath = window.location.pathname;
  window.addEventListener("popstate", () => { if (window.location.pathname !== shownPath) window.location.reload(); });

  // What a form led to has no address: to come back to it would end at the browser's own page ("send the form again?").
  const { formPage, user = "" } = document.documentElement.dataset;
  if (formPage) history.replaceState(null, "", formPage);

  // Idle: the screen is cleared when the login has ended, not at the next click; in all tabs at once when somebody signs out.
  // Nobody is there for what a page asks by itself (?watch=1); a key or a click in one tab counts in all of them.
  const leave = (address = "/login?notice=signed_out") => { document.body.replaceChildren(); window.location.replace(address); };
  const tabs = new BroadcastChannel("localmed"), ACTIVE = "\n"; // no name of a user
  const idle = Number(document.documentElement.dataset.idle);
  const since = () => Number(sessionStorage.getItem("localmed-active")) || Date.now(); // outlives a page that loads itself again
  let used = false, timer;
  const wait = () => { clearTimeout(timer); timer = setTimeout(() => leave("/login?idle=1"), Math.max(0, since() + idle * 1000 - Date.now())); };
  const active = () => { used = true; sessionStorage.setItem("localmed-active", Date.now()); if (idle) wait(); };
  if (user) tabs.onmessage = ({ data }) => { if (data === ACTIVE) active(); else if (data !== user) leave(); };
  if (user || window.location.pathname === "/login") tabs.postMessage(user); // an error's page may not know who is signed in
  if (idle) {
    let told = 0;
    for (const kind of ["keydown", "pointerdown", "wheel", "touchmove"]) window.addEventListener(kind, () => {
      active();
      if (Date.now() - told > 1000) { told = Date.now(); tabs.postMessage(ACTIVE); }
    }, { passive: true });
    if (new URLSearchParams(window.location.search).has("watch")) wait(); else active();
  }

  localmed.wirings.push((root) => {
    for (const form of root.querySelectorAll("form[data-confirm]"))
      form.addEventListener("submit", (event) => {
        const chosen = form.querySelector("select")?.selectedOptions[0]?.text;
        if (!window.confirm([form.dataset.confirm, chosen].filter(Boolean).join("\n"))) event.preventDefault();
      });
  });

  // Another language or look: the page comes anew, and what was typed stays in its fields. It is kept nowhere else.
  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (form.getAttribute("action") !== "/preferences") return;
    event.preventDefault();
    const body = new URLSearchParams(new FormData(form, event.submitter));
    body.set("back", window.location.pathname + window.location.search);
    const reply = await fetch(form.action, { method: "POST", body, headers: { accept: "text/html" } }).catch(() => null);
    if (!reply?.ok || new URL(reply.url).pathname !== window.location.pathname) return window.location.reload();
    document.querySelector("[data-cancel]")?.onclick?.(); // a question that runs is asked again in the other language
    const page = new DOMParser().parseFromString(policy.createHTML(await reply.text()), "text/html");
    const fields = () => [...document.querySelectorAll("main :is(textarea, select, input:not([type=hidden], [type=file]))")];
    const typed = fields().map(({ name, value, checked }) => ({ name, value, checked }));
    const open = document.getElementById("menu").checked;
    for (const [name, value] of Object.entries(page.documentElement.dataset)) document.documentElement.dataset[name] = value;
    document.documentElement.lang = page.documentElement.lang;
    document.title = page.title;
    localmed.put(document.body, page.body.innerHTML);
    fields().forEach((field, at) => {
      const was = typed[at];
      if (was?.name !== field.name) return;
      if (!["checkbox", "radio"].includes(field.type)) field.value = was.value;
      else if (was.value === field.value) field.checked = was.checked; // the list may have changed meanwhile
    });
    document.getElementById("menu").checked = open;
    document.querySelector(event.submitter.name === "language" ? ".who [name=language]" : ".menu summary").focus();
  });

  // A form is sent once, however often somebody clicks.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (event.defaultPrevented || form.method !== "post" || form.target || "stays" in form.dataset) return;
    if (form.dataset.sent) return event.preventDefault();
    form.dataset.sent = "true";
  });

  // A page is long: it is scrolled to where its mark begins, which is where the picture has the colours of the marker.
  const DPI = 110; // of the picture, as the next line: see ingest/render.py
  const MARKER = [[214, 158, 0], [255, 235, 110]]; // border and fill, see ingest/render.py
  const pinnedOver = (part) => // the height of what stays in sight above a page: its title, and the way back on a page by itself
    part.closest(".source").querySelector("header").offsetHeight + (part.closest("[data-pane]") ? 0 : document.querySelector(".back")?.offsetHeight ?? 0);
  const showMark = (sheet) => {
    const picture = sheet.querySelector("img"), canvas = document.createElement("canvas"), pane = sheet.closest("[data-pane]");
    const [width, height] = [canvas.width, canvas.height] = [picture.naturalWidth, picture.naturalHeight];
    if (!width || !picture.clientWidth) return;
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.drawImage(picture, 0, 0);
    const pixels = context.getImageData(0, 0, width, height).data;
    const is = ([red, green, blue], at) => pixels[at] === red && pixels[at + 1] === green && pixels[at + 2] === blue;
    // Begin where it can be read: no narrower than its text, a page across at the size that it has on paper.
    const dark = (column) => { for (let row = 0; row < height; row += 2) if (pixels[4 * (row * width + column) + 1] < 128) return true; return false; };
    let first = 0, last = width - 1;
    while (first < last && !dark(first)) first += 1;
    while (first < last && !dark(last)) last -= 1;
    const least = last - first < width / 3 ? 0 : Math.max((sheet.clientWidth * width) / (last - first + width / 25), width > height ? (width * 96) / DPI : 0);
    sheet.style.setProperty("--least", `${Math.min(least, 2 * width)}px`);
    sheet.scrollLeft = (first * picture.clientWidth) / width - 8;
    let at = 0;
    while (at < pixels.length && !MARKER.some((colour) => is(colour, at))) at += 4;
    if (at >= pixels.length && !sheet.dataset.top) return;
    const pinned = pinnedOver(sheet), marked = at < pixels.length;
    const scale = picture.clientWidth / width, top = (marked ? Math.floor(at / 4 / width) : (sheet.dataset.top * DPI) / 72) * scale;
    const left = marked ? ((at / 4) % width) * scale : 0;
    if (left > sheet.scrollLeft + sheet.clientWidth / 2) sheet.scrollLeft = left - sheet.clientWidth / 4;
    if (pane?.matches(".first") && pane.scrollHeight <= pane.clientHeight) return; // nobody asked for the page to move
    const scroller = pane && pane.scrollHeight > pane.clientHeight ? pane : document.scrollingElement;
    const from = scroller === pane ? pane.getBoundingClientRect().top : 0;
    scroller.scrollTop += picture.getBoundingClientRect().top + top - from - pinned - (scroller.clientHeight - pinned) / 4;
  };
  localmed.wirings.push((root) => {
    for (const text of root.querySelectorAll("[data-text]")) {
      const mark = text.querySelector("mark, [data-begins]"), pane = text.closest("[data-pane]");
      if (!mark || !mark.offsetParent) continue;
      const scroller = pane && pane.scrollHeight > pane.clientHeight ? pane : pane ? null : document.scrollingElement;
      const pinned = pinnedOver(text);
      if (scroller) scroller.scrollTop += mark.getBoundingClientRect().top - (pane ? pane.getBoundingClientRect().top : 0) - pinned - (scroller.clientHeight - pinned) / 4;
    }
    for (const sheet of root.querySelectorAll("[data-mark]")) {
      const picture = sheet.querySelector("img");
      if (picture.complete) showMark(sheet);
      else picture.addEventListener("load", () => showMark(sheet), { once: true });
    }
  });

  // A source opens in the pane beside the answer where there is room for it; else its link leads to its own page. There its
  // pages are turned in place: the button keeps the focus, and Esc leads back to the answer.
  const WIDE = 1120;
  let opener = null;
  const close = (pane) => {
    pane.hidden = true;
    for (const link of document.querySelectorAll("[data-source][aria-current]")) link.removeAttribute("aria-current");
    (opener?.isConnected ? opener : pane.closest(".beside").querySelector("a[data-source]")).focus();
    opener = null;
  };
  const openSource = async (link, pane, sent) => {
    const url = new URL(link.href || link.action);
    const beside = !pane.contains(link), whole = pane.matches(".whole");
    if (!sent) url.searchParams.set("part", whole ? "2" : "1");
    if (beside) opener = link;
    const reply = await fetch(url, { ...sent, headers: { accept: "text/html" } });
    if (reply.redirected) return window.location.replace("/login?notice=signed_out");
    const text = await reply.text();
    if (beside) {
      if (opener !== link) return; // closed, or another source asked for, while this one was on its way
      for (const other of document.querySelectorAll("[data-source][aria-current]")) other.removeAttribute("aria-current");
      link.setAttribute("aria-current", "true");
    }
    if (!reply.ok) return sent ? link.submit() : window.location.assign(link.href);
    if (whole && !sent) history.replaceState(null, "", link.href);
    const kept = beside || sent ? [] : [...pane.querySelectorAll("[data-found]")], sought = kept.length && pane.querySelector("[name=words]").value;
    pane.hidden = false;
    pane.classList.remove("first");
    pane.scrollTop = 0; // before: a picture that the browser has already is scrolled to its mark as it is put
    localmed.put(pane, text);
    if (kept.length) { // what was looked for stays, with where it is
      pane.querySelector(".tools").append(...kept);
      for (const hit of pane.querySelectorAll(".places a")) hit.toggleAttribute("aria-current", hit.href === link.href);
      pane.querySelector("[name=words]").value = sought;
    }
    const again = link.dataset.key && pane.querySelector(`[data-key="${link.dataset.key}"]`); // the same button once more
    (again || pane.querySelector(sent ? "[name=words]" : "[data-focus]"))?.focus({ preventScroll: true });
  };
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-source]");
    const whole = link?.closest(".whole"), pane = whole ?? link?.closest(".beside")?.querySelector("[data-pane]");
    const asking = pane && pane.closest("[data-progress]"); // to leave the page would cancel the question
    if (!pane || (window.innerWidth < WIDE && !asking && !whole) || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    openSource(link, pane);
  });
  document.addEventListener("submit", (event) => { // what is looked for in a document is shown in the pane
    const form = event.target.closest("form[data-find]"), pane = form?.closest("[data-pane], .whole");
    if (!pane) return;
    event.preventDefault();
    const body = new URLSearchParams(new FormData(form));
    body.set("part", pane.matches(".whole") ? "2" : "1");
    openSource(form, pane, { method: "POST", body });
  });
  // Esc closes what was opened, the page beside or the menu, and stops a question; from a page by itself it leads back, else to the box.
  const box = () => [...document.querySelectorAll("#question, #follow-up")].find((one) => one.offsetParent);
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.defaultPrevented || event.isComposing) return;
    const menu = document.querySelector(".menu[open]"), cancel = document.querySelector("[data-progress]:not([hidden]) [data-cancel]");
    if (menu) { menu.open = false; return menu.firstElementChild.focus(); }
    const pane = [...document.querySelectorAll("[data-pane]:not([hidden])")].find((one) => one.offsetParent);
    if (pane && (opener || pane.contains(document.activeElement) || !pane.matches(".first"))) return close(pane);
    if (cancel) return cancel.click();
    if (document.querySelector(".whole")) return history.back();
    box()?.focus();
  });
  // What is copied of a section, by its button or by hand, carries where it stands and what was asked.
  const citation = (card) => [card.dataset.cited, document.body.dataset.copied];
  const cited = (card, text) => [text.trim(), ...citation(card)].join("\n\n");
  // The same for a program that takes tables: no attribute of ours, no fold, the citation below.
  const citedHtml = (card, part) => {
    const copy = document.createElement("div");
    copy.append(part);
    for (const ours of copy.querySelectorAll("summary, button")) ours.remove();
    for (const cut of copy.querySelectorAll("[data-cut]")) cut.textContent = "[...]";
    for (const fold of copy.querySelectorAll("details")) fold.replaceWith(...fold.childNodes);
    for (const one of copy.querySelectorAll("*")) for (const { name } of [...one.attributes]) if (name !== "colspan") one.removeAttribute(name);
    for (const [parts, whole] of [["td, th", "tr"], ["thead, tbody, tr", "table"]]) { // chosen within a row, within a table
      const inner = copy.querySelectorAll(`:scope > :is(${parts})`), outer = document.createElement(whole);
      if (inner.length) inner[0].before(outer);
      outer.append(...inner);
    }
    for (const table of copy.querySelectorAll("table")) table.border = "1";
    for (const line of citation(card).join("\n").split("\n")) copy.appendChild(document.createElement("p")).textContent = line;
    return copy.innerHTML;
  };
  // The lines of a section: no word of ours, and the names of a table's columns once, though a part of it was folded.
  const textOf = (section) => {
    const lines = [], row = (cells) => [...cells].map((cell) => cell.textContent.trim()).join(" | ");
    let columns = "";
    for (const part of section.querySelectorAll("p, tr")) {
      const names = part.closest("thead"), line = part.matches("tr") ? row(part.cells) : part.textContent.replace(/\s+/g, " ").trim();
      if (part.matches("[data-cut]")) lines.push("[...]");
      else if (line && !(names && line === columns)) lines.push(line);
      columns = names ? line : part.matches("tr") ? columns : "";
    }
    return lines;
  };
  const copied = (button) => { // one button at a time says so, for a while
    for (const other of document.querySelectorAll("[data-words]")) Object.assign(other, { textContent: other.dataset.words });
    button.dataset.words ??= button.textContent;
    button.textContent = button.dataset.done;
    clearTimeout(copied.timer);
    copied.timer = setTimeout(() => { button.textContent = button.dataset.words; }, 4000);
  };
  document.addEventListener("copy", (event) => {
    const chosen = document.getSelection(), card = chosen?.anchorNode?.parentElement?.closest("[data-cited]");
    if (!card || event.target.matches("input, textarea") || !String(chosen).trim() || !card.contains(chosen.focusNode)) return;
    event.clipboardData.setData("text/plain", cited(card, String(chosen)));
    event.clipboardData.setData("text/html", citedHtml(card, chosen.getRangeAt(0).cloneContents()));
    event.preventDefault();
  });
  localmed.wirings.push((root) => {
    for (const button of root.querySelectorAll("[data-copy-section]")) {
      button.hidden = !navigator.clipboard;
      button.addEventListener("click", async () => {
        const card = button.closest("article"), section = card.querySelector(".section").cloneNode(true);
        for (const fold of section.querySelectorAll("details:not([open])")) // rows that are folded were not asked for
          if (fold.querySelector("table")) fold.replaceWith(Object.assign(document.createElement("p"), { textContent: "[...]" }));
        const kinds = { "text/plain": cited(card, textOf(section).join("\n")), "text/html": citedHtml(card, section) };
        if (!navigator.clipboard.write) await navigator.clipboard.writeText(kinds["text/plain"]); // an older browser
        else await navigator.clipboard.write([new ClipboardItem(Object.fromEntries(Object.entries(kinds).map(([type, text]) => [type, new Blob([text], { type })])))]);
        copied(button);
      });
    }
    for (const button of root.querySelectorAll("[data-now]")) window.addEventListener("load", () => button.click(), { once: true });
  });
  localmed.wirings.push((root) => {
    for (const button of root.querySelectorAll("[data-close]")) {
      const pane = button.closest("[data-pane]");
      if (pane) { button.hidden = false; button.addEventListener("click", () => close(pane)); }
    }
    for (const button of root.querySelectorAll("[data-print]")) { button.hidden = false; button.addEventListener("click", () => window.print()); }
    for (const button of root.querySelectorAll("[data-copy]")) {
      button.hidden = !navigator.clipboard;
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).value);
        copied(button);
      });
    }
  });

  // A page is printed with the time of printing, by the clock of this machine.
  window.addEventListener("beforeprint", () => {
    const now = new Date(), here = new Date(now - now.getTimezoneOffset() * 60000).toISOString().slice(0, 16).replace("T", " ");
    for (const time of document.querySelectorAll("time[data-printed]")) time.textContent = here;
  });

  // An open answer disappears when something that it cites is withdrawn, and comes anew when something is superseded.
  setInterval(async () => {
    for (const article of document.querySelectorAll("[data-holds]")) {
      const address = article.dataset.holds + (used ? "" : "&watch=1");
      used = false;
      const reply = await fetch(address, { headers: { accept: "application/json" } }).catch(() => null);
      if (reply && (reply.status === 410 || reply.status === 401 || reply.status === 404)) window.location.replace(article.dataset.path);
    }
  }, 5000);

  // How far a job is is put in its place, so that the focus stays; what has ended leads to the page after it.
  const watch = async () => {
    const job = document.querySelector("[data-job]");
    const reply = job && await fetch("?watch=1", { headers: { accept: "text/html" } }).catch(() => null);
    if (reply && (reply.redirected || !reply.ok)) return window.location.replace(reply.url);
    if (reply) localmed.put(job, new DOMParser().parseFromString(policy.createHTML(await reply.text()), "text/html").querySelector("[data-job]").innerHTML);
  };
  setInterval(watch, 2000);

  // Where the server is away the page says so, and nothing on it leads to the browser's own error page.
  const lives = () => fetch("/health/live").then((reply) => reply.ok, () => false), away = () => document.querySelector("[data-away]");
  const pause = (milliseconds) => new Promise((done) => { setTimeout(done, milliseconds); });
  setInterval(async () => {
    if (document.visibilityState !== "visible" || !away()) return;
    const there = (await lives()) || (await pause(1000), await lives()); // a page that is being left breaks one off
    if (away()) away().hidden = there;
  }, 5000);
  for (const kind of ["click", "submit"]) document.addEventListener(kind, (event) => {
    if (away()?.hidden !== false || !event.target.closest(kind === "click" ? "a[href]" : "form")) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    away().scrollIntoView({ block: "nearest" });
  }, { capture: true });

  // A question: the reply to the form is a stream of events, {kind, value} each.
  const ask = async (form, button) => {
    const find = (name) => document.querySelector(`[data-${name}]`);
    const progress = find("progress"), failure = find("failure"), answer = find("answer"), stop = new AbortController();
    const fields = new FormData(form, button); // before its buttons are disabled
    const sections = (html) => { // what a model reads now; another text than before closes the page that was opened from it
      localmed.put(find("passages"), html);
    };
    const fail = (words) => { sections(""); progress.hidden = true; failure.textContent = words; failure.hidden = false; };
    document.querySelector("main > .notice[role=status]")?.remove(); // what was told of an earlier step
    failure.hidden = true;
    progress.hidden = false;
    progress.scrollIntoView({ block: "nearest" });
    sections("");
    find("ended").textContent = "";
    find("step").textContent = find("step").dataset.begun || find("step").textContent;
    for (const button of form.querySelectorAll("button")) button.disabled = true;
    find("cancel").onclick = () => { stop.abort(); fail(find("cancel").dataset.cancelled); };
    try {
      const reply = await fetch(form.action, { method: "POST", body: form.enctype.startsWith("multipart") ? fields : new URLSearchParams(fields), headers: { accept: "text/event-stream" }, signal: stop.signal });
      if (reply.status === 401) return window.location.replace("/login?notice=signed_out");
      if (!reply.ok) { const { error } = await reply.json(); return fail(error.message); }
      let ended = false, rest = "";
      const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
        const blocks = (rest + piece.value).split("\n\n");
        rest = blocks.pop();
        for (const block of blocks.filter((text) => text.startsWith("data: "))) {
          const { kind, value, code } = JSON.parse(block.slice(6));
          if (code === "web.error.signed_out") return window.location.replace("/login?notice=signed_out"); // nothing stays on a shared screen
          if (kind === "step") find("step").textContent = value;
          else if (kind === "progress") progress.querySelector("progress").value = value;
          else if (kind === "sections") sections(value);
          else if (kind === "error") { ended = true; fail(value); }
          else if (kind === "answer") {
            ended = true;
            progress.hidden = true;
            sections("");
            window.scrollTo(0, 0); // to see the progress it may have been scrolled
            localmed.put(answer, value.html);
            if (value.box) localmed.put(find("box"), value.box); // as loading the page again would show it
            find("ended").textContent = value.said;
            document.querySelector("[data-before]")?.remove();
            const box = document.querySelector("form.ask");
            if (form.isConnected && form !== box && !answer.contains(form)) form.hidden = true; // its place is the answer's page now
            history.pushState(null, "", shownPath = value.path);
            const heading = answer.querySelector("[data-focus]");
            if (!heading) continue;
            heading.focus({ preventScroll: true }); // by itself it comes to the middle, and what warns above it is cut
            (answer.querySelector(".answer > .notice") ?? heading).scrollIntoView({ block: "nearest" });
          }
        }
      }
      if (!ended) fail(failure.dataset.lost);
    } catch (error) {
      if (error.name !== "AbortError") fail(failure.dataset.lost);
    } finally {
      for (const button of form.querySelectorAll("button")) button.disabled = false;
      if (!failure.hidden) (form.querySelector("textarea") ?? button)?.focus({ preventScroll: true });
    }
  };
  localmed.wirings.push((root) => {
    for (const form of root.querySelectorAll("form[data-ask]"))
      if (document.querySelector("[data-progress]")) form.addEventListener("submit", (event) => {
        event.preventDefault();
        ask(form, event.submitter);
      });
  });

  // Enter asks. While one types, what the library has on it is listed; a choice fills the box.
  localmed.wirings.push((root) => {
    for (const box of root.querySelectorAll("#question[data-identifiers], #follow-up")) box.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.defaultPrevented) return;
      event.preventDefault();
      box.form.requestSubmit();
    });
    for (const box of root.querySelectorAll("[data-suggest]")) {
      const list = document.getElementById(box.dataset.suggest);
      let timer, asked = 0, chosen = -1;
      const close = () => { asked += 1; clearTimeout(timer); list.hidden = true; chosen = -1; box.removeAttribute("aria-activedescendant"); };
      const take = (option) => { box.value = option.textContent; close(); box.focus(); };
      const mark = (place) => {
        chosen = (place + list.children.length) % list.children.length;
        [...list.children].forEach((option, at) => option.setAttribute("aria-selected", at === chosen));
        box.setAttribute("aria-activedescendant", list.children[chosen].id);
      };
      const show = (names) => {
        list.replaceChildren(...names.map((name, at) => {
          const option = document.createElement("span");
          Object.assign(option, { id: `${list.id}-${at}`, textContent: name, role: "option" });
          option.setAttribute("aria-selected", "false");
          option.addEventListener("mousedown", (event) => { event.preventDefault(); take(option); });
          return option;
        }));
        chosen = -1;
        list.hidden = !names.length;
        box.removeAttribute("aria-activedescendant");
      };
      box.addEventListener("input", () => {
        close(); // what was chosen is not what is typed now
        const turn = asked;
        timer = setTimeout(async () => {
          const body = new URLSearchParams({ form: box.form.elements.namedItem("form").value, question: box.value });
          const reply = await fetch("/ask/suggestions", { method: "POST", body, headers: { accept: "application/json" } }).catch(() => null);
          if (turn === asked && reply && reply.ok) show(await reply.json());
        }, 80);
      });
      box.addEventListener("keydown", (event) => {
        if (list.hidden || event.isComposing) return;
        if (event.key === "ArrowDown" || event.key === "ArrowUp") mark(event.key === "ArrowDown" ? chosen + 1 : Math.max(chosen, 0) - 1);
        else if (event.key === "Enter" && chosen >= 0) take(list.children[chosen]);
        else if (event.key === "Escape") close();
        else return;
        event.preventDefault();
      }, { capture: true });
      box.addEventListener("blur", close);
      box.form.addEventListener("submit", close);
    }
  });

  // Keys: "/" leads to the box; from the heading of an answer, or a section, up and down lead to the next section.
  document.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.target.closest("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/" && box()) { event.preventDefault(); box().focus(); return box().select(); }
    if (event.key === "?") return window.location.assign("/guide");
    const links = [...document.querySelectorAll(".card h3 a[data-source]")].filter((link) => link.checkVisibility());
    const at = links.findIndex((link) => link.closest(".card").contains(event.target));
    if (!step || (at < 0 && !event.target.matches("[data-focus]"))) return;
    const next = links[at + step];
    if (!next) return;
    event.preventDefault();
    next.focus({ preventScroll: true });
    next.closest(".card").scrollIntoView({ block: "nearest" });
  });

  // What looks like a patient's name is told while it is typed, before it is sent.
  localmed.wirings.push((root) => {
    for (const field of root.querySelectorAll("[data-identifiers]")) {
      const warning = field.parentElement.querySelector("[role=status]");
      let timer;
      field.addEventListener("input", () => {
        clearTimeout(timer);
        timer = setTimeout(async () => {
          const body = new URLSearchParams({ form: field.form.elements.namedItem("form").value, question: field.value });
          const reply = await fetch("/ask/identifiers", { method: "POST", body, headers: { accept: "application/json" } }).catch(() => null);
          warning.textContent = reply && reply.ok ? await reply.text() : "";
          warning.hidden = !warning.textContent;
        }, 500);
      });
    }
  });

  localmed.wirings.push((root) => {
    for (const button of root.querySelectorAll("[data-leave-out]")) {
      button.hidden = false;
      button.onclick = () => button.closest(".card").remove();
    }
    for (const all of root.querySelectorAll("[data-all]")) {
      all.hidden = false;
      all.onchange = () => { for (const box of all.form.querySelectorAll("tbody [type=checkbox]")) box.checked = all.checked; };
    }
  });

  // A file may be dropped anywhere on a page that takes one.
  for (const kind of ["dragover", "drop"]) document.addEventListener(kind, (event) => {
    const field = document.querySelector("form:not([hidden]):is([data-upload], [data-ask]) [type=file]");
    if (!field || event.target === field || !event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    if (kind === "drop") { field.files = event.dataTransfer.files; field.focus(); }
  });

  // An upload: how far it is, and ending it. What is too large is not sent at all.
  localmed.wirings.push((root) => {
    for (const form of root.querySelectorAll("form[data-upload]")) form.addEventListener("submit", (event) => {
      event.preventDefault();
      const find = (selector) => form.querySelector(selector), failure = find("[role=alert]"), bar = find("progress"), abort = find("[data-abort]");
      const show = (words, busy) => { failure.textContent = words; failure.hidden = !words; bar.hidden = abort.hidden = !busy; find("button").disabled = busy; (busy ? abort : find("button")).focus(); };
      const size = [...find("[type=file]").files].reduce((sum, file) => sum + file.size, 0);
      if (size > Number(form.dataset.upload)) return show(form.dataset.large, false);
      const request = new XMLHttpRequest();
      request.open("POST", form.action);
      request.setRequestHeader("x-form-token", form.elements.namedItem("form").value);
      request.setRequestHeader("accept", "application/json");
      request.upload.onprogress = (moment) => { bar.value = moment.loaded / moment.total; };
      request.onload = () => {
        if (request.status < 400) return window.location.assign(request.responseURL);
        const { error } = JSON.parse(request.responseText);
        show(error.message, false);
      };
      request.onerror = () => show(form.dataset.lost, false);
      abort.onclick = () => { request.abort(); show("", false); };
      show("", true);
      request.send(new FormData(form));
    });
  });

  document.addEventListener("DOMContentLoaded", () => localmed.wire(document));
})();
