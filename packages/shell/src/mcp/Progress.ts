/**
 * Reports what a running command prints last, at most once a second, and while it prints nothing, that it goes on: a client may
 * cancel a call of which it hears nothing for a minute. Spec: SL-124, SL-585 in specs/shell.md.
 */
import { Effect, Queue, type Scope } from "effect"
import type { OutputStream } from "../output/OutputStore.ts"

/** Characters of a report. */
const longest = 2_000
const pause = "1 second"
/** Milliseconds without output until a report says so. */
const quiet = 15_000

export interface Report {
  /** Grows with each report: the characters that the command has printed so far, and one for each report without output. */
  readonly progress: number
  /** The last characters, without the beginning of a surrogate pair; or that there are none. */
  readonly message: string
}

const lastOf = (text: string): string => {
  const code = text.charCodeAt(text.length - longest)
  return text.slice(-longest + (code >= 0xdc00 && code <= 0xdfff ? 1 : 0))
}

/** Takes the output of a command; a fiber of the scope sends reports. */
export const make = Effect.fnUntraced(function* (
  send: (report: Report) => Effect.Effect<void>
): Effect.fn.Return<(stream: OutputStream, text: string) => void, never, Scope.Scope> {
  const clock = yield* Effect.clock
  const bell = yield* Queue.sliding<void>(1)
  let characters = 0
  let latest = ""
  let beats = 0
  let printedAt = clock.unsafeCurrentTimeMillis()
  yield* Queue.take(bell).pipe(
    Effect.zipRight(Effect.suspend(() => send({ progress: characters + beats, message: latest }))),
    Effect.zipRight(Effect.sleep(pause)),
    Effect.forever,
    Effect.forkScoped
  )
  /** Sleeps until nothing has been printed for `quiet`, or for another `quiet`. */
  const watch = (wait: number): Effect.Effect<never> =>
    Effect.flatMap(Effect.sleep(wait), () => {
      const silent = clock.unsafeCurrentTimeMillis() - printedAt
      if (silent < quiet) return watch(quiet - silent)
      beats += 1
      const message = `no output for ${Math.floor(silent / 1_000)} seconds`
      return Effect.zipRight(send({ progress: characters + beats, message }), watch(quiet))
    })
  yield* Effect.forkScoped(watch(quiet))
  return (_, text) => {
    if (text === "") return
    characters += text.length
    latest = lastOf(latest + text)
    printedAt = clock.unsafeCurrentTimeMillis()
    bell.unsafeOffer(undefined)
  }
})
