/* Steps (see _ext/step_by_step.py): show one step at a time, with the buttons "back" and "next". */
"use strict";

function makeButton(label, onClick) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = label;
  button.addEventListener("click", onClick);
  return button;
}

function makeSteppable(container) {
  const steps = [...container.querySelectorAll("figure.drawing")];
  let current = 0;

  const controls = document.createElement("div");
  controls.className = "steps-controls";
  const back = makeButton("\u2190 back", () => show(current - 1));
  const next = makeButton("next \u2192", () => show(current + 1));
  const position = document.createElement("span");
  controls.append(back, position, next);

  function show(number) {
    if (number < 0 || number >= steps.length) return;
    const scrolled = steps[current].scrollLeft; // A narrow screen scrolls a wide drawing, and keeps the place.
    current = number;
    steps.forEach((step, index) => { step.hidden = index !== current; });
    steps[current].scrollLeft = scrolled;
    position.textContent = `step ${current + 1} of ${steps.length}`;
    // A disabled button would lose the focus, and a reader with a keyboard would have to search it again.
    back.setAttribute("aria-disabled", current === 0);
    next.setAttribute("aria-disabled", current === steps.length - 1);
  }

  container.setAttribute("role", "group");
  container.setAttribute("aria-label", container.querySelector(".step-by-step-title")?.textContent ?? "steps");
  container.tabIndex = 0;
  container.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!move || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    show(current + move);
  });

  const stage = document.createElement("div");
  stage.setAttribute("aria-live", "polite"); // A screen reader reads the text of each new step.
  steps[0].before(controls, stage);
  stage.append(...steps);
  container.classList.add("is-stepped");
  show(0);
}

document.querySelectorAll("div.step-by-step").forEach(makeSteppable);
