// Code, formulas and tables that are wider than the page can be scrolled with the keyboard: they take the focus.
(() => {
  const names = [["pre", "Code"], [".formula", "Formula"], [".table-wrapper", "Table"], [".sig", "Signature"]];
  const update = () => {
    for (const [selector, name] of names) {
      for (const element of document.querySelectorAll(selector)) {
        if (element.scrollWidth > element.clientWidth) {
          element.tabIndex = 0;
          element.setAttribute("role", "region");
          element.setAttribute("aria-label", `${name}, wider than the page`);
        } else if (element.tabIndex === 0) {
          for (const each of ["tabindex", "role", "aria-label"]) element.removeAttribute(each);
        }
      }
    }
  };
  addEventListener("load", update);
  addEventListener("resize", update);
})();
