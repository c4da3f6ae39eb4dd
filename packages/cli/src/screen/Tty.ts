/**
 * Owns the terminal: raw keys in, bytes out, and its modes, which every end of the process restores. Spec: SC-501, SC-513, SC-514
 * in specs/screen.md.
 */
import { writeSync } from "node:fs"
import { setKittyProtocolActive } from "@mariozechner/pi-tui/dist/keys.js"
import { StdinBuffer } from "@mariozechner/pi-tui/dist/stdin-buffer.js"
import { Effect, type Scope } from "effect"
import { type Background, backgroundNamed, backgroundOf } from "./Theme.ts"

/** What the terminal sent. */
export type Typed =
  | {
      readonly type: "key"
      readonly data: string
      /** It came together with others: a paste, or a script. */ readonly burst: boolean
    }
  | { readonly type: "paste"; readonly text: string }
  | { readonly type: "resize" }
  | { readonly type: "background"; readonly background: Background }
  /** The terminal came to the front, or another window did. */
  | { readonly type: "focus"; readonly inFront: boolean }
  /** The terminal is gone. */
  | { readonly type: "end" }

export interface Tty {
  readonly columns: () => number
  readonly rows: () => number
  readonly write: (bytes: string) => void
  readonly whenWritten: Effect.Effect<void>
  /** Gives the terminal away while `use` runs. */
  readonly without: <A>(use: () => A) => A
}

/** Pastes are marked, changes of the window in front are told, and the cursor is drawn by the editor. */
const opened = "\u001b[?2004h\u001b[?1004h\u001b[?25l"
const [toFront, toBack] = ["\u001b[I", "\u001b[O"]
/** Shift-Enter, Alt-Enter and Esc become distinct keys, in a terminal that answers the question. */
const [askKeys, distinctKeys, plainKeys] = ["\u001b[?u", "\u001b[>1u", "\u001b[<u"]
const askBackground = "\u001b]11;?\u0007"
const closed = "\u001b[?2026l\u001b[?1004l\u001b[?2004l\u001b[?25h"

export const open = (take: (typed: Typed) => void): Effect.Effect<Tty, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const { stdin, stdout } = process
      const keys = new StdinBuffer({ timeout: 25 })
      let distinct = false
      let isOpen = false
      let burst = false
      let typedAhead = true

      const onReport = (data: string): boolean => {
        if (data.startsWith("\u001b[?") && data.endsWith("u")) {
          if (!distinct) stdout.write(distinctKeys)
          distinct = true
          setKittyProtocolActive(true)
          return true
        }
        if (data === toFront || data === toBack) {
          take({ type: "focus", inFront: data === toFront })
          return true
        }
        const background = data.startsWith("\u001b]11;") ? backgroundOf(data) : undefined
        if (background !== undefined) take({ type: "background", background })
        return data.startsWith("\u001b]")
      }
      keys
        .on("data", (data) => {
          if (onReport(data)) return
          // Esc twice at once arrives as one key.
          const pressed = data === "\u001b\u001b" ? ["\u001b", "\u001b"] : [data]
          for (const key of pressed) take({ type: "key", data: key, burst })
        })
        .on("paste", (text) => take({ type: "paste", text }))

      const onData = (data: Buffer | string) => {
        const first = data.toString()
        // Before raw mode the terminal turns Enter into a line feed. A paste is marked, and Ctrl-J arrives alone.
        burst = !first.startsWith("\u001b") && Array.from(first).length > 1
        const text = typedAhead && burst ? first.replaceAll("\n", "\r") : first
        typedAhead = false
        keys.process(text)
      }
      const onResize = () => take({ type: "resize" })
      const onEnd = () => take({ type: "end" })

      const start = () => {
        isOpen = true
        typedAhead = true
        stdin.setRawMode(true)
        stdin.setEncoding("utf8")
        stdin.on("data", onData).on("end", onEnd).on("error", onEnd).resume()
        stdout.on("resize", onResize).on("error", onEnd)
        stdout.write(opened + askKeys + askBackground)
      }
      /** Synchronous: it also runs when the process exits. */
      const restore = () => {
        if (!isOpen) return
        isOpen = false
        try {
          writeSync(1, (distinct ? plainKeys : "") + closed)
          if (!stdin.destroyed) stdin.setRawMode(false)
        } catch {
          // The terminal is gone.
        }
        distinct = false
        setKittyProtocolActive(false)
      }
      const stop = () => {
        restore()
        stdin.off("data", onData).off("end", onEnd).off("error", onEnd).pause()
        stdout.off("resize", onResize).off("error", onEnd)
        keys.clear()
      }
      const onContinue = () => {
        stop()
        start()
        onResize()
      }
      process.on("exit", restore).on("SIGCONT", onContinue)
      start()
      const tty: Tty = {
        columns: () => stdout.columns || 80,
        rows: () => stdout.rows || 24,
        write: (bytes) => void stdout.write(bytes),
        whenWritten: Effect.async((resume) => {
          if (!stdout.writableNeedDrain) return resume(Effect.void)
          const onDrain = () => resume(Effect.void)
          stdout.once("drain", onDrain)
          return Effect.sync(() => stdout.off("drain", onDrain))
        }),
        without: (use) => {
          stop()
          try {
            return use()
          } finally {
            start()
          }
        }
      }
      return {
        tty,
        release: () => {
          stop()
          process.off("exit", restore).off("SIGCONT", onContinue)
          keys.destroy()
        }
      }
    }),
    ({ release }) => Effect.sync(release)
  ).pipe(Effect.map(({ tty }) => tty))

/**
 * Bytes that tell a person in another window: the bell, and the notifications of terminals that have them (OSC 9, OSC 777).
 * The text has no control characters.
 */
export const notification = (text: string): string =>
  `\u0007\u001b]9;daybook: ${text}\u001b\\\u001b]777;notify;daybook;${text.replaceAll(";", ",")}\u001b\\`

/** The background until the terminal has said it. */
export const likelyBackground = (env: Readonly<Record<string, string | undefined>>): Background =>
  backgroundNamed(env["COLORFGBG"]) ?? "dark"
