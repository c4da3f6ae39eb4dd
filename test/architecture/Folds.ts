/** Finds folds over events that a new event type would pass unnoticed. Spec: AR-6 in specs/architecture.md. */
import { parseSync, Visitor } from "oxc-parser"
import type { Module } from "./ImportGraph.ts"

/** With it as default, the compiler refuses a type that no case names and whose family is not listed by name either. */
const closing = /\bsatisfies[\s|]+(?:never\b|EventIn<[\s|]*")/

/** The `switch` statements over event types whose default does not close them, as `file:line`. */
export const openFolds = (modules: ReadonlyArray<Module>): ReadonlyArray<string> =>
  modules
    .filter(({ text }) => /case "session\./.test(text))
    .flatMap(({ path, text }) => {
      const found: Array<string> = []
      const visitor = new Visitor({
        SwitchStatement({ cases, start }) {
          const overEvents = cases.some(
            ({ test }) => test?.type === "Literal" && /^session\.(?:created|next\.)/.test(String(test.value))
          )
          const rest = cases.find(({ test }) => test === null)
          const closed = rest !== undefined && closing.test(text.slice(rest.start, rest.end))
          if (overEvents && !closed) found.push(`packages/${path}:${text.slice(0, start).split("\n").length}`)
        }
      })
      visitor.visit(parseSync(path, text).program)
      return found
    })
