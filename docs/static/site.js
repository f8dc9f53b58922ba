/* Names for both margins, and for keyboards a way to scroll what is wider than the page. */
function name_and_scroll() {
  for (const [margin, name] of [[".sidebar-drawer", "Site"], [".toc-drawer", "On this page"]])
    document.querySelector(margin)?.setAttribute("aria-label", name);
  for (const each of document.querySelectorAll("article pre, .table-wrapper, .formula, span.long"))
    each.tabIndex = each.scrollWidth > each.clientWidth ? 0 : -1;
}
addEventListener("load", name_and_scroll);
addEventListener("resize", name_and_scroll);
