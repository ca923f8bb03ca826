"use strict";
// Adds to a page that is whole without it: tabs, the reading line of charts, hiding of
// conditions, and the picker of rollouts. Text goes in by textContent only.
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const make = (name, className, text) => {
    const node = document.createElement(name);
    if (className) node.className = className;
    if (text !== undefined) node.textContent = text;
    return node;
  };
  document.documentElement.classList.add("scripted");

  function tabs(list) {
    const buttons = all("[role=tab]", list);
    const choose = (chosen, focus) => {
      for (const button of buttons) {
        const is = button === chosen;
        button.setAttribute("aria-selected", String(is));
        button.tabIndex = is ? 0 : -1;
        document.getElementById(button.getAttribute("aria-controls")).hidden = !is;
      }
      if (focus) chosen.focus();
    };
    list.addEventListener("click", (event) => {
      const button = event.target.closest("[role=tab]");
      if (button) choose(button);
    });
    list.addEventListener("keydown", (event) => {
      const at = buttons.indexOf(document.activeElement);
      const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: buttons.length - 1 }[event.key];
      if (to === undefined || at < 0) return;
      event.preventDefault();
      choose(buttons[(to + buttons.length) % buttons.length], true);
    });
    if (buttons.length) choose(buttons[0]);
  }

  function legends() {
    for (const button of all(".legend button")) {
      button.addEventListener("click", () => {
        const key = button.dataset.condition;
        const shown = button.getAttribute("aria-pressed") !== "true";
        for (const same of all(`.legend button[data-condition="${key}"]`))
          same.setAttribute("aria-pressed", String(shown));
        for (const curve of all(`.curve.c${key}`)) curve.toggleAttribute("hidden", !shown);
      });
    }
  }

  // The box of chart.py.
  const LEFT = 38, RIGHT = 350, TOP = 10, BOTTOM = 184, WIDTH = 360;

  function pointsOf(path) {
    return path.getAttribute("d").slice(1).split("L").map((pair) => pair.split(" ").map(Number));
  }

  function reading(svg) {
    const tip = svg.parentNode.querySelector(".tip"), line = svg.querySelector(".reading");
    const low = +svg.dataset.low, high = +svg.dataset.high, last = +svg.dataset.last;
    const share = svg.dataset.scale === "share";
    const means = all(".mean", svg).map((path) => ({ path, points: pointsOf(path) }));
    const xs = [...new Set(means.flatMap(({ points }) => points.map((p) => p[0])))].sort((a, b) => a - b);
    let at = xs.length - 1;
    const value = (y) => {
      const v = low + ((BOTTOM - y) / (BOTTOM - TOP)) * (high - low);
      return share ? `${(100 * v).toFixed(0)} %` : String(+v.toPrecision(3));
    };
    function show(index) {
      if (!xs.length) return;
      at = Math.max(0, Math.min(xs.length - 1, index));
      const x = xs[at], step = ((x - LEFT) / (RIGHT - LEFT)) * last;
      line.setAttribute("d", `M${x} ${TOP}V${BOTTOM}`);
      const rows = [];
      for (const { path, points } of means) {
        if (path.parentNode.hasAttribute("hidden")) continue;
        const near = points.reduce((a, b) => (Math.abs(b[0] - x) < Math.abs(a[0] - x) ? b : a));
        if (Math.abs(near[0] - x) > 12) continue;
        const row = make("div"), name = make("span", path.parentNode.getAttribute("class").replace("curve ", ""));
        name.append(make("i"), path.dataset.name);
        row.append(name, make("b", "", value(near[1])));
        rows.push([near[1], row]);
      }
      rows.sort((a, b) => a[0] - b[0]);
      tip.replaceChildren(make("b", "", `step ${Math.round(step)}`), ...rows.map((pair) => pair[1]));
      tip.hidden = false;
    }
    const hide = () => { tip.hidden = true; line.setAttribute("d", ""); };
    const nearest = (event) => {
      const box = svg.getBoundingClientRect(), x = ((event.clientX - box.left) / box.width) * WIDTH;
      return xs.reduce((best, v, i) => (Math.abs(v - x) < Math.abs(xs[best] - x) ? i : best), 0);
    };
    svg.addEventListener("pointermove", (event) => show(nearest(event)));
    svg.addEventListener("pointerdown", (event) => show(nearest(event)));
    svg.addEventListener("pointerleave", hide);
    svg.addEventListener("focus", () => { if (svg.matches(":focus-visible")) show(at); });
    svg.addEventListener("blur", hide);
    svg.addEventListener("keydown", (event) => {
      const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: xs.length - 1 }[event.key];
      if (event.key === "Escape") hide();
      if (to === undefined) return;
      event.preventDefault();
      show(to);
    });
  }

  function picker(box) {
    const blocks = all(".run-pages", box), bar = make("div", "picker");
    const field = (label) => {
      const select = make("select"), wrap = make("label", "", label);
      wrap.append(select);
      bar.append(wrap);
      return select;
    };
    const fill = (select, names) => {
      const old = select.value;
      select.replaceChildren(...[...new Set(names)].map((name) => make("option", "", name)));
      if (names.includes(old)) select.value = old;
    };
    const run = field("Run"), agent = field("Agent"), step = field("Step");
    const back = make("button", "", "Earlier"), on = make("button", "", "Later");
    back.type = on.type = "button";
    bar.append(back, on);
    function update() {
      fill(agent, blocks.filter((b) => b.dataset.run === run.value).map((b) => b.dataset.agent));
      const block = blocks.find((b) => b.dataset.run === run.value && b.dataset.agent === agent.value);
      const pages = all(".page", block);
      fill(step, pages.map((page) => page.dataset.step));
      for (const other of blocks) { other.hidden = other !== block; other.open = other === block; }
      for (const page of pages) { const is = page.dataset.step === step.value; page.hidden = !is; page.open = is; }
      back.disabled = step.selectedIndex <= 0;
      on.disabled = step.selectedIndex >= step.options.length - 1;
    }
    const move = (by) => { step.selectedIndex += by; update(); };
    back.addEventListener("click", () => move(-1));
    on.addEventListener("click", () => move(1));
    for (const select of [run, agent, step]) select.addEventListener("change", update);
    fill(run, blocks.map((block) => block.dataset.run));
    box.classList.add("picked");
    box.prepend(bar);
    update();
  }

  function current() {
    const links = all("nav a");
    const sections = links.map((link) => document.querySelector(link.getAttribute("href")));
    const mark = () => {
      let at = 0;
      sections.forEach((section, i) => { if (section.getBoundingClientRect().top < 120) at = i; });
      links.forEach((link, i) => (i === at ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current")));
    };
    addEventListener("scroll", mark, { passive: true });
    mark();
  }

  all("[role=tablist]").forEach(tabs);
  legends();
  all(".chart").forEach(reading);
  all(".rollouts").forEach(picker);
  current();
})();
