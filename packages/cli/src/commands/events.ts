/** `daybook events`: replays durable events after a cursor, and follows. Spec: CL-12, CL-13, CL-50..CL-52, CL-208. */
import { type Chunk, type Context, Effect, Stream } from "effect"
import type { SessionEvent } from "@daybook/log/events/SessionEvents"
import { EventLog, type ReplayComplete } from "@daybook/log/log/EventLog"
import * as Flags from "../arguments/Flags.ts"
import * as SessionReference from "../arguments/SessionReference.ts"
import { type FieldValues, verb } from "../arguments/Verb.ts"
import { withReader } from "../host/Runtime.ts"
import { eventJson, eventLine } from "../render/EventLine.ts"
import { NotFound } from "../support/Errors.ts"
import { Output } from "../terminal/Output.ts"

const given = {
  session: Flags.optional("SESSION"),
  after: Flags.integer("after", "N", "only events with a sequence number above N (-1: all events)", -1),
  follow: Flags.toggle("follow", "keep printing new events, also those of other processes"),
  json: Flags.json
}

const isEvent = (item: SessionEvent | ReplayComplete): item is SessionEvent => item.type !== "replay.complete"

/** Characters that are buffered before a write: small events share a write, large ones are not copied. */
const batch = 64 * 1024

const writeLines = Effect.fnUntraced(function* (
  output: Context.Tag.Service<Output>,
  events: Chunk.Chunk<SessionEvent>,
  line: (event: SessionEvent) => string
) {
  let waiting = ""
  for (const event of events) {
    waiting += `${line(event)}\n`
    if (waiting.length < batch) continue
    yield* output.write(waiting)
    waiting = ""
  }
  yield* output.write(waiting)
})

const prunedText = (id: string, floor: number): string =>
  `the events of ${id} up to ${floor} were pruned: give --after ${floor} for those that remain, or put the others back ` +
  "with daybook prune --restore FILE"

const run = Effect.fn("Command.events")(function* (options: FieldValues<typeof given>) {
  const output = yield* Output
  const log = yield* EventLog
  const session = yield* SessionReference.resolveHere(options.session)
  const line = options.json ? (event: SessionEvent) => eventJson(event, output.terminal) : eventLine
  const items = log.tailMarked({ sessionID: session.id, after: options.after })
  yield* (options.follow ? Stream.filter(items, isEvent) : Stream.takeWhile(items, isEvent)).pipe(
    Stream.runForEachChunk((events) => writeLines(output, events, line)),
    Effect.catchTag("CursorExpired", ({ floor }) => new NotFound({ message: prunedText(session.id, floor) }))
  )
})

export const events = verb({
  name: "events",
  summary: "replay a session's events after a cursor, and follow them",
  words: "[SESSION]",
  details: [
    `${SessionReference.lastUsed} ` +
      "Every event is printed once, in order. A reader that stops after the event with sequence number N continues with " +
      "--after N and misses none."
  ],
  given,
  examples: [
    ["daybook events --json > events.jsonl", "the whole log of the last session, one JSON object per line"],
    ["daybook events fix --after 41 --follow", "events after 41 of the session called fix, and new ones"]
  ],
  overServer: true,
  run: (options) => withReader(run(options))
})
