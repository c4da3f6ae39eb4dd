/**
 * Makes and arranges elements. Every text becomes a text node, and `visible` shows its control characters, invisible characters
 * and bidirectional controls as signs, as the command does at a terminal. Spec: SL-226 in specs/shell.md.
 */
import { visible } from "../../render/Plain.ts"

export type Child = Node | string | undefined

const isChild = (child: Child): child is Node | string => child !== undefined

/** An element with attributes and children; an undefined child is left out. */
export const element = <Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Readonly<Record<string, string>> = {},
  ...children: ReadonlyArray<Child>
): HTMLElementTagNameMap[Tag] => {
  const made = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value)
  fill(made, ...children)
  return made
}

/** Replaces the children. */
export const fill = (parent: Element, ...children: ReadonlyArray<Child>): void =>
  parent.replaceChildren(
    ...children.filter(isChild).map((child) => (typeof child === "string" ? visible(child) : child))
  )

const svg = "http://www.w3.org/2000/svg"

/** A picture of the document. */
export const picture = (name: string): SVGElement => {
  const made = document.createElementNS(svg, "svg")
  made.setAttribute("class", "icon")
  made.setAttribute("aria-hidden", "true")
  const use = document.createElementNS(svg, "use")
  use.setAttribute("href", `#icon-${name}`)
  made.append(use)
  return made
}

/** Replaces the children of the parent. Moves only nodes that are in another place. */
export const arrange = (parent: Element, nodes: ReadonlyArray<Node>): void => {
  const wanted = new Set(nodes)
  for (const child of Array.from(parent.childNodes).filter((each) => !wanted.has(each))) child.remove()
  nodes.forEach((node, index) => {
    const there = parent.childNodes[index]
    if (there !== node) parent.insertBefore(node, there ?? null)
  })
}

/** The element of the document with this id. */
export const find = <Type extends Element>(id: string, type: new () => Type): Type => {
  const found = document.getElementById(id)
  if (!(found instanceof type)) throw new Error(`the document has no ${id}`)
  return found
}
