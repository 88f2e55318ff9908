// The one script. Pages work without it; it makes them quicker. Elements ask for what they need by data-* attributes:
//   <html data-idle="900">        after so many seconds without a key or a click the screen is cleared (sign-in page)
//   <form data-confirm="...">     asks before it is sent
// Text from the server enters a page through one Trusted Types policy, and only what this server rendered.
"use strict";
(() => {
  const policy = window.trustedTypes ? window.trustedTypes.createPolicy("localmed", { createHTML: (text) => text }) : { createHTML: (text) => text };
  const localmed = (window.localmed = { put: (element, html) => { element.innerHTML = policy.createHTML(html); localmed.wire(element); }, wirings: [] });
  localmed.wire = (root) => { for (const wiring of localmed.wirings) wiring(root); };

  // A page that comes back from the browser's memory may be another user's: ask the server again.
  window.addEventListener("pageshow", (event) => { if (event.persisted) window.location.reload(); });

  // Idle: the screen is cleared when the login has ended, not at the next click.
  const idle = Number(document.documentElement.dataset.idle);
  if (idle) {
    let timer;
    const again = () => {
      clearTimeout(timer);
      timer = setTimeout(() => { document.body.replaceChildren(); window.location.replace("/login?notice=signed_out"); }, idle * 1000);
    };
    for (const kind of ["keydown", "pointerdown", "scroll"]) window.addEventListener(kind, again, { passive: true });
    again();
  }

  localmed.wirings.push((root) => {
    for (const form of root.querySelectorAll("form[data-confirm]"))
      form.addEventListener("submit", (event) => { if (!window.confirm(form.dataset.confirm)) event.preventDefault(); });
  });

  document.addEventListener("DOMContentLoaded", () => localmed.wire(document));
})();
