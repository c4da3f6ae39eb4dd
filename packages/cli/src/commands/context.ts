/** `daybook context`: shows the next request to the model, or an earlier one. Spec: CL-75..CL-79. */
import { Effect } from "effect"
import { ModelResolver } from "@daybook/core/model/ModelResolver"
import { shownAt, type ShownRequest } from "@daybook/core/request/Recorded"
import { Sessions } from "@daybook/core/session/Sessions"
import * as Flags from "../arguments/Flags.ts"
import * as Folder from "../arguments/Folder.ts"
import * as SessionReference from "../arguments/SessionReference.ts"
import { verb } from "../arguments/Verb.ts"
import { Remote, type Server } from "../host/Remote.ts"
import { withConfigured, withReader, withSessions } from "../host/Runtime.ts"
import { requestJson, requestText, sizeTable } from "../render/Request.ts"
import { Output } from "../terminal/Output.ts"

const at = Flags.integer(
  "at",
  "SEQ",
  "the request of the turn that event SEQ belongs to, or of the last turn before it",
  0
)
const sizes = Flags.toggle("tokens", "only the table of sizes")

interface Options {
  readonly session: string | undefined
  readonly tokens: boolean
  readonly json: boolean
}

const print = Effect.fnUntraced(function* (
  { json, tokens }: Options,
  request: ShownRequest,
  window: number | undefined
) {
  const output = yield* Output
  const shown = { request, window }
  if (json) return yield* output.write(`${requestJson(shown, output.terminal)}\n`)
  if (tokens) return yield* output.write(sizeTable(shown))
  for (const piece of requestText(shown, output.terminal)) yield* output.write(piece)
})

/** An earlier turn, from the log alone. */
const runAt = Effect.fn("Command.context.at")(function* (options: Options, seq: number) {
  const session = yield* SessionReference.resolve(options.session, yield* Folder.current)
  yield* print(options, yield* shownAt(session.id, seq), undefined)
})

/** The next turn, as the runtime would make it. */
const runNext = Effect.fn("Command.context.next")(function* (options: Options) {
  const sessions = yield* Sessions
  const session = yield* SessionReference.resolve(options.session, yield* Folder.current)
  const request = yield* sessions.request({ sessionID: session.id })
  const { info } = yield* (yield* ModelResolver).resolve(request.model)
  yield* print(options, request, info.contextTokens > 0 ? info.contextTokens : undefined)
})

/** Either turn, as a server shows it. */
const runOver = Effect.fn("Command.context.over")(function* (server: Server, options: Options, at: number | undefined) {
  const session = yield* SessionReference.resolve(options.session, yield* Folder.current)
  const request = yield* (yield* Sessions).request({ sessionID: session.id, at })
  const { limits } = yield* Effect.promise(() => import("../host/RemoteMachine.ts"))
  yield* print(options, request, at === undefined ? (yield* limits(server, session.id)).contextTokens : undefined)
})

export const context = verb({
  name: "context",
  summary: "show the next request to the model, or an earlier one",
  words: "[SESSION]",
  details: [
    "SESSION is an id or a title. Default: the session used last in this folder, or else the one used last anywhere. " +
      "It prints the whole request as it would be sent: system texts, tools, messages with their calls and results, each " +
      "with its estimated tokens. Nothing is written, no model is called, and no MCP server is started, so MCP tools are " +
      "not listed.",
    "With --at it prints the request of an earlier turn, from the log alone: no configuration, model or server is needed. " +
      "daybook events prints the sequence numbers."
  ],
  given: { session: Flags.optional("SESSION"), at, tokens: sizes, json: Flags.json },
  examples: [
    ["daybook context | less", "the next request of the last session"],
    ["daybook context fix --tokens", "the size of each part"],
    ["daybook context fix --at 41 --json", "the request of the turn at event 41, as one JSON object"]
  ],
  overServer: true,
  run: ({ at, json, session, tokens }) => {
    const options = { session: session, tokens, json }
    return Effect.flatMap(Remote, (server) => {
      if (server !== undefined) return withSessions(runOver(server, options, at))
      return at === undefined ? withConfigured(runNext(options)) : withReader(runAt(options, at))
    })
  }
})
