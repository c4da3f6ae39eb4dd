/** Reports what a running command prints last, at most once a second. Spec: SL-124 in specs/shell.md. */
import { Effect, Queue, type Scope } from "effect"
import type { OutputStream } from "../output/OutputStore.ts"

/** Characters of a report. */
const longest = 2_000
const pause = "1 second"

export interface Report {
  /** Characters that the command has printed so far, of both streams. */
  readonly characters: number
  /** The last of them, without the beginning of a surrogate pair. */
  readonly latest: string
}

const lastOf = (text: string): string => {
  const code = text.charCodeAt(text.length - longest)
  return text.slice(-longest + (code >= 0xdc00 && code <= 0xdfff ? 1 : 0))
}

/** Takes the output of a command; a fiber of the scope sends reports while there is something new. */
export const make = Effect.fnUntraced(function* (
  send: (report: Report) => Effect.Effect<void>
): Effect.fn.Return<(stream: OutputStream, text: string) => void, never, Scope.Scope> {
  const bell = yield* Queue.sliding<void>(1)
  let report: Report = { characters: 0, latest: "" }
  yield* Queue.take(bell).pipe(
    Effect.zipRight(Effect.suspend(() => send(report))),
    Effect.zipRight(Effect.sleep(pause)),
    Effect.forever,
    Effect.forkScoped
  )
  return (_, text) => {
    if (text === "") return
    report = { characters: report.characters + text.length, latest: lastOf(report.latest + text) }
    bell.unsafeOffer(undefined)
  }
})
