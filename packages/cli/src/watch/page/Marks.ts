/** Marks what a filter finds, without a change of the document. Spec: SL-227 in specs/shell.md. */

/** Marks in the document. */
const most = 2_000

/** Marks every place below the element where the pattern is found; without a pattern, none. */
export const markFound = (element: Element, pattern: RegExp | undefined): void => {
  // Older browsers have no highlights, and show the same commands without marks.
  if (!("highlights" in CSS)) return
  CSS.highlights.delete("found")
  if (pattern === undefined) return
  const everywhere = new RegExp(pattern.source, `${pattern.flags}g`)
  const found = new Highlight()
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT)
  while (walker.nextNode() !== null && found.size < most) {
    const node = walker.currentNode
    for (const { 0: text, index } of (node.nodeValue ?? "").matchAll(everywhere)) {
      const range = new StaticRange({
        startContainer: node,
        startOffset: index,
        endContainer: node,
        endOffset: index + text.length
      })
      found.add(range)
      if (found.size >= most) break
    }
  }
  CSS.highlights.set("found", found)
}
