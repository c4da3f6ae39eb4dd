/**
 * Owns the terminal while a run is followed: writes permanent text and redraws the live lines below it. The terminal has one
 * writer at a time: redraws wait until a question is answered.
 * Spec: CL-45, CL-46 in specs/cli.md.
 */
import { fstatSync, writeSync } from "node:fs"
import { Clock, Effect, type Scope } from "effect"
import { type Live, liveLines, tickMillis } from "../render/LiveLines.ts"
import * as LiveLines from "../render/LiveLines.ts"
import type { Style } from "../render/Style.ts"
import type { OutputClosed, OutputFailed } from "../support/Errors.ts"
import { Output } from "./Output.ts"
import * as Terminal from "./Terminal.ts"

/** Writes permanent text and draws the live lines. */
export interface Screen {
  readonly write: (pieces: ReadonlyArray<LiveLines.Piece>) => Effect.Effect<void, OutputClosed | OutputFailed>
  /** Ends the open row and removes the live lines. */
  readonly close: Effect.Effect<void>
}

/** Whether stderr can redraw lines. */
export const canMove = (): boolean =>
  process.stderr.isTTY === true && process.env["TERM"] !== "dumb" && (process.env["DAYBOOK_DEBUG"] ?? "") === ""

/** Whether stdout and stderr are the same terminal, and so share the screen. */
export const isShared = (): boolean =>
  process.stdout.isTTY === true && process.stderr.isTTY === true && fstatSync(1).rdev === fstatSync(2).rdev

const size = () => ({ columns: process.stderr.columns || 80, rows: process.stderr.rows || 24 })

const looksOf = ({ dim }: Style): LiveLines.Looks => {
  const plain = { prefix: "", paint: (row: string) => row }
  return { text: plain, note: plain, reasoning: { prefix: "> ", paint: dim } }
}

export interface Options {
  readonly style: Style
  readonly live: () => Live
  /** Returns when all output so far has been written. */
  readonly caughtUp: Effect.Effect<void>
}

/** Opens the screen until the scope closes. */
export const open = ({ caughtUp, live, style }: Options): Effect.Effect<Screen, never, Output | Scope.Scope> =>
  Effect.gen(function* () {
    const output = yield* Output
    const looks = looksOf(style)
    const shared = isShared()
    let region: LiveLines.Region | undefined = LiveLines.empty
    const send = (picture: string) => output.draw(shared ? "stdout" : "stderr", picture)

    const draw = (pieces: ReadonlyArray<LiveLines.Piece>) =>
      Terminal.turn(
        Effect.flatMap(Clock.currentTimeMillis, (now) => {
          if (region === undefined) return Effect.void
          const { columns, rows } = size()
          const [next, text] = LiveLines.next(
            region,
            pieces,
            liveLines(live(), now, { columns, rows }, style),
            columns,
            looks
          )
          region = next
          return text === "" ? Effect.void : send(text)
        })
      )

    /** Synchronous, because it also runs when the process exits. */
    const end = (): string => {
      if (region === undefined) return ""
      const text = LiveLines.close(region, size().columns, looks)
      region = undefined
      return text
    }
    const atExit = () => {
      const text = end()
      if (text !== "") writeSync(2, text)
    }
    const close = Terminal.turn(Effect.suspend(() => Effect.ignore(send(end()))))

    yield* Effect.acquireRelease(
      Effect.sync(() => {
        process.on("exit", atExit)
        Terminal.shown({
          caughtUp,
          clear: Effect.suspend(() => {
            if (region === undefined) return Effect.void
            const text = LiveLines.close(region, size().columns, looks)
            region = LiveLines.empty
            return Effect.ignore(send(text))
          })
        })
      }),
      () =>
        Effect.zipRight(
          close,
          Effect.sync(() => {
            process.off("exit", atExit)
            Terminal.shown(undefined)
          })
        )
    )
    // A status line that cannot be drawn does not fail the run; `write` reports failures of the output.
    yield* Effect.forkScoped(Effect.forever(Effect.delay(Effect.ignore(draw([])), tickMillis)))
    return { write: draw, close }
  })
