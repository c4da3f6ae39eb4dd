/**
 * Follows what a shell prints while it runs one command after another: gives the output of each command to its sinks, and
 * finds its end. Synchronous; `LiveShell.ts` writes the lines and waits. Spec: SL-13..SL-15 in specs/shell.md.
 */
import { randomBytes } from "node:crypto"
import { Deferred, Effect } from "effect"
import type { StreamName } from "../transport/Program.ts"
import * as ControlStream from "./ControlStream.ts"
import * as StreamCutter from "./StreamCutter.ts"

let pool = Buffer.alloc(0)

/** 128 random bits. Many are drawn at once: a call of the random source costs more than a token. */
export const makeToken = (): string => {
  if (pool.length === 0) pool = randomBytes(4_096)
  const token = pool.toString("hex", 0, 16)
  pool = pool.subarray(16)
  return token
}

/** Take the output of one command. */
export interface Sinks {
  readonly stdout: StreamCutter.Sink
  readonly stderr: StreamCutter.Sink
}

/** `answered`: the shell has reported the end. `aborted`: it reads lines again and has not. `closed`: it has ended. */
export type News = "answered" | "aborted" | "closed"

interface Running {
  readonly number: number
  /** The end with this token completes the command: its own, or that of a later question for the end. */
  token: string
  reported: boolean
  code: number | undefined
}

export interface Dialogue {
  readonly take: (stream: StreamName, bytes: Uint8Array) => void
  /** Expects the output and the end of the next command; returns its token. */
  readonly begin: (number: number, sinks: Sinks) => string
  /** Expects another report of the running command's end; returns its token. */
  readonly again: () => string
  /** Waits until the shell has read the command's line and runs it, or has ended. */
  readonly begun: Effect.Effect<void>
  /** Waits for the next news of the running command. */
  readonly news: Effect.Effect<News>
  /** Nothing more comes. */
  readonly close: () => void
  /** Exit code of the last command that the shell reported. */
  readonly code: () => number
  readonly cwd: () => string
}

/** `mark` names the shell; `late` takes what comes outside of commands. */
export const make = (mark: string, late: StreamCutter.Sink): Dialogue => {
  const stdout = StreamCutter.make(late)
  const stderr = StreamCutter.make(late)
  let running: Running | undefined
  let closed = false
  let aborted = false
  let code = 0
  let cwd = ""
  let waiting: Deferred.Deferred<News> | undefined
  let beginning: Deferred.Deferred<void> | undefined

  const passed = ({ reported, token }: Running) => reported && stdout.passed(`${token}>`) && stderr.passed(`${token}>`)
  const current = (): News | undefined => {
    if (running !== undefined && passed(running)) return "answered"
    return closed ? "closed" : aborted ? "aborted" : undefined
  }
  const check = () => {
    if (beginning !== undefined && (stdout.begun() || closed)) Deferred.unsafeDone(beginning, Effect.void)
    const news = waiting === undefined ? undefined : current()
    if (news !== undefined && waiting !== undefined) Deferred.unsafeDone(waiting, Effect.succeed(news))
  }
  const end = (found: number) => {
    if (running === undefined) return
    running.code ??= found
    code = running.code
  }
  const control = ControlStream.make(mark, {
    ended: (record) => {
      end(record.code)
      cwd = record.cwd ?? cwd
      if (running?.token === record.token) running.reported = true
    },
    idle: ({ code: found, number }) => {
      if (running?.number !== number || running.code !== undefined) return
      // An interrupt took the rest of the command's line.
      end(found)
      aborted = true
    }
  })
  return {
    take: (stream, bytes) => {
      const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
      const part = { stdout, stderr, control }[stream]
      part.add(buffer)
      check()
    },
    begin: (number, sinks) => {
      const token = makeToken()
      running = { number, token, reported: false, code: undefined }
      aborted = false
      control.expect(token)
      stdout.expect(`${token}<`, `${token}>`, sinks.stdout)
      stderr.expect(`${token}<`, `${token}>`, sinks.stderr)
      return token
    },
    again: () => {
      const token = makeToken()
      if (running !== undefined) Object.assign(running, { token, reported: false })
      aborted = false
      control.expect(token)
      stdout.alsoEnds(`${token}>`)
      stderr.alsoEnds(`${token}>`)
      return token
    },
    begun: Effect.flatMap(Deferred.make<void>(), (next) => {
      beginning = next
      check()
      return Deferred.await(next)
    }),
    news: Effect.suspend(() => {
      const news = current()
      if (news !== undefined) return Effect.succeed(news)
      return Effect.flatMap(Deferred.make<News>(), (next) => {
        waiting = next
        check()
        return Deferred.await(next)
      })
    }),
    close: () => {
      stdout.flush()
      stderr.flush()
      closed = true
      check()
    },
    code: () => code,
    cwd: () => cwd
  }
}
