/**
 * `daybook tree`, `label`, `branch` and `fork`: the tree of a session's messages, labels of messages, where history
 * continues, and a new session from a message. Spec: CL-211..CL-216.
 */
import { Chunk, Effect, Iterable, Stream } from "effect"
import { Sessions } from "@daybook/core/session/Sessions"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { TreeNode } from "@daybook/log/domain/HistoryPath"
import { allItems } from "@daybook/log/store/Pages"
import { SessionStore } from "@daybook/log/store/SessionStore"
import * as Flags from "../arguments/Flags.ts"
import * as SessionReference from "../arguments/SessionReference.ts"
import { verb } from "../arguments/Verb.ts"
import { placeOf } from "../host/HistoryPlace.ts"
import { withConfigured, withReader, withSessions, sessionWord } from "../host/Runtime.ts"
import { oneLine, visible } from "../render/Plain.ts"
import { Output, writeJson } from "../terminal/Output.ts"
import { kindOf } from "./sessions.ts"

const title = Flags.text("title", "TITLE", "the title of the fork (default: that of SESSION)")

const runFork = Effect.fn("Command.fork")(function* (given: {
  readonly session: string
  readonly message: string | undefined
  readonly title: string | undefined
  readonly json: boolean
}) {
  const output = yield* Output
  const { id: sessionID } = yield* SessionReference.resolveHere(given.session)
  const messageID =
    given.message === undefined ? undefined : yield* SessionReference.resolveMessage(sessionID, given.message)
  const { prompt, session } = yield* (yield* Sessions).fork({ sessionID, messageID, title: given.title })
  if (given.json) {
    return yield* writeJson({ sessionID: session.id, ...session.forked, prompt })
  }
  yield* output.note(`the fork of ${sessionID} is the session:\n`)
  yield* output.write(`${session.id}\n`)
  if (prompt === undefined) return
  const { text } = prompt
  yield* output.note(`it ends before this prompt:\n${output.terminal ? visible(text) : text}\n`)
})

export const fork = verb({
  name: "fork",
  summary: "start a new session from the history of another one",
  words: "SESSION [MESSAGE]",
  details: [
    "SESSION is an id, a title, or the beginning of either. MESSAGE is an id, the beginning or end of one, or a label, and the last message of the " +
      "fork; if it is a prompt, the fork ends before it. Default: where the session's history continues. The fork has " +
      "the labels of its messages, the session's folder and budget, and has spent nothing. SESSION does not change."
  ],
  given: { session: sessionWord, message: Flags.optional("MESSAGE"), title, json: Flags.json },
  examples: [
    ["daybook fork fix", "a copy of the history of the session called fix"],
    ['daybook fork fix "before the rewrite" --title other', "the same up to a label, with another title"]
  ],
  overServer: true,
  run: (given) => withSessions(runFork(given))
})

type BranchFlags = { readonly summary: boolean; readonly json: boolean }

const summary = Flags.toggle("summary", "let the model summarize the branch that is left, for the new one")

const runBranch = Effect.fn("Command.branch")(function* (session: string, message: string, given: BranchFlags) {
  const output = yield* Output
  const { id: sessionID, title = sessionID } = yield* SessionReference.resolveHere(session)
  const messageID = yield* SessionReference.resolveMessage(sessionID, message)
  if (given.summary) yield* output.note("… summarizing the branch that is left\n")
  const branched = yield* (yield* Sessions).branch({ sessionID, messageID, summary: given.summary })
  if (given.json) return yield* writeJson({ sessionID, ...branched })
  const place = yield* placeOf(sessionID, branched.leafID)
  const name = `"${oneLine(title, 60)}"`
  yield* output.note(
    branched.moved ? `${name} goes on ${place}\n` : `${name} goes on ${place} already: nothing changed\n`
  )
  if (branched.prompt === undefined) return
  const { text } = branched.prompt
  yield* output.note("the prompt that was there, to be edited and sent again:\n")
  yield* output.write(`${output.terminal ? visible(text) : text}\n`)
})

export const branch = verb({
  name: "branch",
  summary: "continue a session's history at an earlier message or another branch",
  words: "SESSION MESSAGE",
  details: [
    "SESSION is an id, a title, or the beginning of either. MESSAGE is an id, the beginning or end of one, or a label; daybook tree shows them. " +
      "The next prompt follows that message, and the model sees nothing of what came after it. All messages stay in the " +
      "tree. If MESSAGE is a prompt, history continues before it, and its text is printed. The session must not run."
  ],
  given: { session: sessionWord, message: Flags.one("MESSAGE"), summary, json: Flags.json },
  examples: [
    ["daybook branch fix 01JD", "continues after the message whose id ends in 01JD"],
    [
      'daybook branch fix "before the rewrite" --summary',
      "continues at a label, with a summary of what was tried since"
    ]
  ],
  overServer: true,
  run: ({ json, message, session, summary }) => {
    const branching = runBranch(session, message, { json, summary })
    // Only a summary needs the configured models.
    return summary ? withConfigured(branching) : withSessions(branching)
  }
})

/** Levels that are indented; deeper ones stay at the last level. */
const levels = 12

export interface TreeRow {
  readonly node: TreeNode
  readonly head: string
  /** Before the nodes that follow it. */
  readonly rest: string
  readonly level: number
}

const lineOf = ({ head, node }: TreeRow): string => {
  const label = node.label === undefined ? "" : `[${oneLine(node.label)}] `
  const leaf = node.leaf === true ? "  <- history continues here" : ""
  const text = node.text === "" ? "(no text)" : oneLine(node.text, 60)
  const seq = String(node.seq).padStart(6)
  return `${head}${node.onPath ? "*" : "o"} ${seq}  ${kindOf(node)}  ${node.id}  ${label}${text}${leaf}\n`
}

/** The rows of a tree; `nodes` are in the order of the log. */
export const treeRows = function* (nodes: ReadonlyArray<TreeNode>): Generator<TreeRow> {
  const children = new Map<string | undefined, Array<TreeNode>>()
  const known = new Set<string>()
  for (const node of nodes) {
    known.add(node.id)
    // A parent comes first; a message without one is shown as a root.
    const parent = node.parentID !== undefined && known.has(node.parentID) ? node.parentID : undefined
    const siblings = children.get(parent)
    if (siblings === undefined) children.set(parent, [node])
    else siblings.push(node)
  }
  /** The lines below a node, the last one first: its branches, then the way that goes on. */
  const below = (parent: string | undefined, rest: string, level: number): ReadonlyArray<TreeRow> => {
    const own = children.get(parent) ?? []
    const way = own.find(({ onPath }) => onPath) ?? own.at(-1)
    const deeper = level < levels ? [`${rest}|- `, `${rest}|  `] : [rest, rest]
    return own
      .map((node): TreeRow =>
        node === way
          ? { node, head: rest, rest, level }
          : { node, head: deeper[0] ?? rest, rest: deeper[1] ?? rest, level: level + 1 }
      )
      .toSorted((a, b) => Number(b.node === way) - Number(a.node === way) || b.node.seq - a.node.seq)
  }
  const open: Array<TreeRow> = [...below(undefined, "", 0)]
  for (let line = open.pop(); line !== undefined; line = open.pop()) {
    yield line
    open.push(...below(line.node.id, line.rest, line.level))
  }
}

export const treeLines = (nodes: ReadonlyArray<TreeNode>): Iterable<string> => Iterable.map(treeRows(nodes), lineOf)

const pageSize = 200

const nodes = (sessionID: SessionID) =>
  Stream.unwrap(
    Effect.map(SessionStore, (sessions) =>
      allItems((cursor: number | undefined) => sessions.tree({ sessionID, limit: pageSize, cursor }))
    )
  )

const runTree = Effect.fn("Command.tree")(function* (given: string | undefined, json: boolean) {
  const output = yield* Output
  const { id, title } = yield* SessionReference.resolveHere(given)
  if (json) {
    return yield* Stream.runForEachChunk(nodes(id), (page) => writeJson(...page))
  }
  const all = yield* Stream.runCollect(nodes(id))
  if (Chunk.isEmpty(all)) return yield* output.note(`${id} has no messages yet\n`)
  if (title !== undefined) yield* output.note(`${id} "${oneLine(title, 60)}"\n`)
  yield* Stream.fromIterable(treeLines(Chunk.toReadonlyArray(all))).pipe(
    Stream.rechunk(pageSize),
    Stream.runForEachChunk((lines) => output.write(Chunk.join(lines, "")))
  )
})

export const tree = verb({
  name: "tree",
  summary: "show a session's messages as a tree of branches",
  words: "[SESSION]",
  details: [
    `${SessionReference.lastUsed} ` +
      "A star marks the messages that the model is shown or that a summary covers; history continues after the last of " +
      "them. The other branches are indented. daybook branch continues at another message."
  ],
  given: { session: Flags.optional("SESSION"), json: Flags.json },
  examples: [
    ["daybook tree fix", "the branches of the session called fix"],
    ["daybook tree --json", "one object per message, with the id of its parent"]
  ],
  overServer: true,
  run: ({ json, session }) => withReader(runTree(session, json))
})

const runLabel = Effect.fn("Command.label")(function* (session: string, message: string, words: ReadonlyArray<string>) {
  const { id: sessionID } = yield* SessionReference.resolveHere(session)
  const messageID = yield* SessionReference.resolveMessage(sessionID, message)
  const label = words.length === 0 ? undefined : words.join(" ")
  yield* (yield* Sessions).label({ sessionID, messageID, label })
  yield* (yield* Output).note(
    label === undefined ? `${messageID} has no label any more\n` : `${messageID} has the label ${label}\n`
  )
})

export const label = verb({
  name: "label",
  summary: "name a message, or remove its name",
  words: "SESSION MESSAGE [TEXT...]",
  details: [
    "SESSION is an id, a title, or the beginning of either. MESSAGE is an id, the beginning or end of one, or a label. TEXT replaces an earlier " +
      "label; without TEXT the label is removed. daybook tree shows ids and labels."
  ],
  given: { session: sessionWord, message: Flags.one("MESSAGE"), text: Flags.many("TEXT") },
  examples: [
    ["daybook label fix 01JD before the rewrite", "names the message whose id ends in 01JD"],
    ['daybook label fix "before the rewrite"', "removes that name"]
  ],
  overServer: true,
  run: ({ message, session, text }) => withSessions(runLabel(session, message, text))
})
