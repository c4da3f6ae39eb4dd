/** `daybook nodes`: which servers are nodes of the database, and what waits for another one. Spec: CL-822 in specs/cli.md. */
import { Effect, Schema } from "effect"
import { type NodeReport, NodesReport } from "@daybook/log/domain/NodesReport"
import * as Flags from "../arguments/Flags.ts"
import { verb } from "../arguments/Verb.ts"
import * as Nodes from "../host/Nodes.ts"
import { columns, dateTime, jsonLine } from "../render/Plain.ts"
import { Output } from "../terminal/Output.ts"

const encode = Schema.encodeSync(NodesReport)

const handOversOf = ({ handedOver, movedAt, takenUp }: NodeReport): string =>
  `gave ${handedOver} took ${takenUp}${movedAt === undefined ? "" : `, last ${dateTime(movedAt)}`}`

/** Each node, and its sessions below it. */
const table = ({ nodes }: NodesReport): string => {
  const lines = columns(
    nodes.map((node) => [
      node.address,
      node.leaving ? "leaves" : "up",
      `since ${dateTime(node.since)}`,
      `${node.running} running`,
      `lag ${node.lagMs} ms`,
      `unindexed ${node.unindexed}`,
      handOversOf(node),
      node.workspaces.join(" ")
    ])
  ).split("\n")
  return lines.map((line, at) => [line, ...(nodes[at]?.sessions ?? []).map((id) => `  ${id}`)].join("\n")).join("\n")
}

const run = Effect.fn("Command.nodes")(function* ({ json }: { readonly json: boolean }) {
  const output = yield* Output
  const report = yield* Nodes.found
  if (json) return yield* output.write(`${jsonLine(encode(report), output.terminal)}\n`)
  yield* output.write(table(report))
  if (report.nodes.length === 0) {
    yield* output.note("no server is a node of this database; daybook serve --node HOST:PORT begins one\n")
  }
  for (const [, why] of Nodes.missing(report)) yield* output.note(`${why}\n`)
})

export const nodes = verb({
  name: "nodes",
  summary: "list the servers that share the database as nodes",
  words: "",
  details: [
    "The columns are: the address where the other nodes reach it, up or leaves (it ends when its turns do), its start " +
      "(UTC), how many sessions run there, how late its event loop is, how many positions of the log its search index " +
      "does not have yet, how many sessions it gave to other nodes and took from them since its start, and its " +
      "workspaces. The sessions that run there are below it. stderr names the workspaces that sessions wait for and no " +
      "node has."
  ],
  given: { json: Flags.json },
  examples: [
    ["daybook --database postgres://127.0.0.1/daybook nodes", "the nodes of this database"],
    ["daybook nodes --json", "the nodes, and the sessions that wait for another one, as JSON"]
  ],
  overServer: true,
  run
})
