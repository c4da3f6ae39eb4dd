/**
 * Follows what a shell prints while it runs one command after another: gives the output of each command to its sinks, and
 * finds its end. Synchronous; `LiveShell.ts` writes the lines and waits. Spec: SL-13..SL-15 in specs/shell.md.
 */
import { randomBytes } from "node:crypto"
import { Effect } from "effect"
import type { StreamName } from "../transport/Program.ts"
import * as StreamCutter from "./StreamCutter.ts"

let pool = ""

/** Characters of a token: six bits each, and few, because bash reads a line character by character. */
const tokenLength = 22

/** At least 128 random bits. Many are drawn at once: a call of the random source costs more than a token. */
export const makeToken = (): string => {
  // Without dashes: a token begins formats and arguments, where a dash would begin an option.
  if (pool.length < tokenLength) pool = randomBytes(4_096).toString("base64url").replaceAll("-", ".")
  const token = pool.slice(0, tokenLength)
  pool = pool.slice(tokenLength)
  return token
}

/** Take the output of one command. */
export interface Sinks {
  readonly stdout: StreamCutter.Sink
  readonly stderr: StreamCutter.Sink
}

/**
 * `answered`: the shell has reported the end. `aborted`: it reads lines again and has not. `closed`: it has ended. `halted`: the
 * command has to stop. `late`: none of these came in time.
 */
export type News = "answered" | "aborted" | "closed" | "halted" | "late"

interface Running {
  /** The end with this token completes the command: its own, or that of a later question for the end. */
  token: string
  /** Names the news that the shell reads lines again. */
  note: string | undefined
  /** Streams that have passed the end. */
  readonly passed: Record<StreamName, boolean>
  code: number | undefined
}

export interface Dialogue {
  readonly take: (stream: StreamName, bytes: Uint8Array) => void
  /** Expects the output and the end of the next command; returns its token. */
  readonly begin: (sinks: Sinks) => string
  /** Expects another report of the running command's end; returns its token. */
  readonly again: () => string
  /** Expects the news that the shell reads lines again; returns its token. */
  readonly note: () => string
  /** Whether the shell has read the command's line and runs it. */
  readonly hasRun: () => boolean
  /** Whether that is so, or the shell has ended. */
  readonly hasBegun: () => boolean
  /** Waits until that is so. */
  readonly begun: Effect.Effect<void>
  /** Gives the news `halted` once, or takes it back. */
  readonly halt: (isHalted: boolean) => void
  /** Gives the news `late`: the shell does not report the running command's end. */
  readonly giveUp: () => void
  /** Waits for the next news of the running command, at most so long. */
  readonly news: (millis?: number) => Effect.Effect<News>
  /** Nothing more comes. */
  readonly close: () => void
  /** Exit code of the last command that the shell reported. */
  readonly code: () => number
  readonly cwd: () => string
}

/** `late` takes what comes outside of commands. */
export const make = (late: StreamCutter.Sink): Dialogue => {
  let running: Running | undefined
  let closed = false
  let aborted = false
  let halted = false
  let isGivenUp = false
  let code = 0
  let cwd = ""
  let waiting: (() => void) | undefined
  let beginning: (() => void) | undefined

  const end = (found: number) => {
    if (running === undefined) return
    running.code ??= found
    code = running.code
  }
  /** A record of the end: the code and the folder. A shell cannot name a deleted folder. */
  const ended = (record: string) => {
    const [, found = "255", folder = ""] = /^(\d{1,3}) ([^]*)$/.exec(record) ?? []
    end(Number(found))
    if (folder !== "") cwd = folder
  }
  const events = (stream: StreamName): StreamCutter.Events => ({
    ended: (token, record) => {
      if (running?.token !== token) return
      running.passed[stream] = true
      if (stream === "stdout") ended(record)
    },
    noted: (token, record) => {
      if (running?.note !== token || running.code !== undefined) return
      // An interrupt took the rest of the command's line.
      end(Number(record))
      aborted = true
    }
  })
  const streams = {
    stdout: StreamCutter.make(late, events("stdout")),
    stderr: StreamCutter.make(late, events("stderr"))
  }

  const current = (): News | undefined => {
    if (running?.passed.stdout === true && running.passed.stderr) return "answered"
    if (closed) return "closed"
    if (halted) return "halted"
    return isGivenUp ? "late" : aborted ? "aborted" : undefined
  }
  const hasBegun = () => streams.stdout.begun() || closed
  const check = () => {
    if (hasBegun()) beginning?.()
    if (current() !== undefined) waiting?.()
  }
  return {
    take: (stream, bytes) => {
      streams[stream].add(
        Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
      )
      check()
    },
    begin: (sinks) => {
      const token = makeToken()
      running = { token, note: undefined, passed: { stdout: false, stderr: false }, code: undefined }
      aborted = false
      halted = false
      isGivenUp = false
      streams.stdout.expect(token, sinks.stdout)
      streams.stderr.expect(token, sinks.stderr)
      return token
    },
    again: () => {
      const token = makeToken()
      if (running !== undefined) {
        running.token = token
        running.passed.stdout = false
        running.passed.stderr = false
      }
      aborted = false
      streams.stdout.also("end", token)
      streams.stderr.also("end", token)
      return token
    },
    note: () => {
      const token = makeToken()
      if (running !== undefined) running.note = token
      streams.stdout.also("note", token)
      return token
    },
    hasRun: streams.stdout.begun,
    hasBegun,
    begun: Effect.async<void>((resume) => {
      beginning = () => {
        beginning = undefined
        resume(Effect.void)
      }
      check()
    }),
    news: (millis) =>
      Effect.async<News>((resume) => {
        const stop = () => {
          clearTimeout(timer)
          waiting = undefined
        }
        const pass = () => {
          const news = current() ?? "late"
          stop()
          halted &&= news !== "halted"
          resume(Effect.succeed(news))
        }
        const timer = millis === undefined || current() !== undefined ? undefined : setTimeout(pass, millis)
        waiting = pass
        check()
        return Effect.sync(stop)
      }),
    halt: (isHalted) => {
      halted = isHalted
      check()
    },
    giveUp: () => {
      isGivenUp = true
      check()
    },
    close: () => {
      streams.stdout.flush()
      streams.stderr.flush()
      closed = true
      check()
    },
    code: () => code,
    cwd: () => cwd
  }
}
