/** `daybook tree` and `daybook label`: the tree of a session's messages, and names in it. Spec: CL-211 to CL-213. */
import { Chunk, Effect, Option, Stream } from "effect"
import { Sessions } from "@daybook/core/session/Sessions"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { SessionStore } from "@daybook/log/store/SessionStore"
import * as Flags from "../arguments/Flags.ts"
import * as Folder from "../arguments/Folder.ts"
import * as MessageReference from "../arguments/MessageReference.ts"
import * as SessionReference from "../arguments/SessionReference.ts"
import { verb } from "../arguments/Verb.ts"
import { withReader, withSessions } from "../host/Runtime.ts"
import { oneLine } from "../render/Plain.ts"
import { nodeJson, treeLines } from "../render/TreeText.ts"
import { Output } from "../terminal/Output.ts"

const pageSize = 200

const nodes = (sessionID: SessionID) =>
  Stream.unwrap(
    Effect.map(SessionStore, (sessions) =>
      Stream.paginateChunkEffect(undefined as number | undefined, (cursor) =>
        Effect.map(
          sessions.tree({ sessionID, limit: pageSize, cursor }),
          (page) => [Chunk.unsafeFromArray([...page.items]), Option.fromNullable(page.cursor)] as const
        )
      )
    )
  )

const runTree = Effect.fn("Command.tree")(function* (given: string | undefined, json: boolean) {
  const output = yield* Output
  const { id, title } = yield* SessionReference.resolve(given, yield* Folder.current)
  if (json) {
    return yield* Stream.runForEachChunk(nodes(id), (page) =>
      output.write(
        Chunk.join(
          Chunk.map(page, (node) => `${nodeJson(node, output.terminal)}\n`),
          ""
        )
      )
    )
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
    "SESSION is an id or a title. Default: the session used last in this folder, or else the one used last anywhere. " +
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
  const { id: sessionID } = yield* SessionReference.resolve(session, yield* Folder.current)
  const messageID = yield* MessageReference.resolve(sessionID, message)
  const label = words.length === 0 ? undefined : words.join(" ")
  yield* (yield* Sessions).label({ sessionID, messageID, label })
  yield* (yield* Output).note(
    label === undefined ? `${messageID} has no label any more\n` : `${messageID} has the label ${label}\n`
  )
})

export const label = verb({
  name: "label",
  summary: "give a message a name, or remove it",
  words: "SESSION MESSAGE [TEXT...]",
  details: [
    "SESSION is an id or a title. MESSAGE is an id, the beginning or end of one, or a label. TEXT replaces an earlier " +
      "label; without TEXT the label is removed. daybook tree shows ids and labels."
  ],
  given: { session: Flags.one("SESSION"), message: Flags.one("MESSAGE"), text: Flags.many("TEXT") },
  examples: [
    ["daybook label fix 01JD before the rewrite", "names the message whose id ends in 01JD"],
    ['daybook label fix "before the rewrite"', "removes that name"]
  ],
  overServer: true,
  run: ({ message, session, text }) => withSessions(runLabel(session, message, text))
})
