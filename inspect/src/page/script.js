// Replaces the sections of the page by those of each event. All else works without this.
"use strict";
const address = document.body.dataset.live;
if (address) {
  const [news, hold] = ["news", "hold"].map((id) => document.getElementById(id));
  document.getElementById("connection").hidden = false;
  let source;

  // What somebody uses stays as it is, and comes up to date when they have left it.
  const isInUse = (section) =>
    section.contains(document.activeElement) || section.querySelector("details[open]");

  const show = (html) => {
    const page = new DOMParser().parseFromString(html, "text/html");
    let last;
    for (const fresh of page.querySelectorAll("section[id]")) {
      const old = document.getElementById(fresh.id);
      if (!old) {
        if (last) last.after(fresh);
        last = fresh;
        continue;
      }
      last = old;
      if (isInUse(old)) continue;
      const places = [...old.querySelectorAll(".scroll")].map((part) => part.scrollLeft);
      old.replaceWith(fresh);
      fresh.querySelectorAll(".scroll").forEach((part, at) => { part.scrollLeft = places[at] ?? 0; });
      last = fresh;
    }
  };

  const follow = () => {
    source = new EventSource(address);
    source.onmessage = (event) => {
      show(JSON.parse(event.data));
      if (news.textContent !== "live") news.textContent = "live";
    };
    source.onerror = () => {
      const text = "no news: the program does not answer";
      if (news.textContent !== text) news.textContent = text;
    };
  };

  let isHeld = false;
  hold.onclick = () => {
    isHeld = !isHeld;
    if (isHeld) {
      source.close();
      news.textContent = "stopped";
    } else {
      follow();
    }
    hold.textContent = isHeld ? "Follow again" : "Stop updates";
  };
  follow();
}
