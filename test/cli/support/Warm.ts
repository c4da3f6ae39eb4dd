/**
 * Starts commands in processes that have loaded the bundle before: loading it takes most of the time of a short command. Each
 * command has its own words, environment and working folder, empty input and pipes for output. A process runs one command at
 * a time. It runs no other after a signal, or after a command that left something open.
 */
import { type ChildProcess, fork } from "node:child_process"
import { randomUUID } from "node:crypto"
import { fileURLToPath } from "node:url"
import type { Ended } from "./Process.ts"

const program = fileURLToPath(new URL("warmProcess.cjs", import.meta.url))

export interface Command {
  readonly words: ReadonlyArray<string>
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
}

/** A command's process, as its watcher sees it. */
export interface Started {
  readonly pid: number
  /** The output so far. */
  readonly text: { readonly stdout: string; readonly stderr: string }
  readonly ended: Ended | undefined
  readonly signal: (name: NodeJS.Signals) => void
}

interface Report {
  readonly mark: string
  readonly code: number
  readonly clean: boolean
}

class Warm {
  readonly child: ChildProcess
  /** Whether it can run another command. */
  clean = true
  #ready: boolean = false
  #waiting: (() => void) | undefined

  constructor(bin: string) {
    this.child = fork(program, [bin], { stdio: ["ignore", "pipe", "pipe", "ipc"], execArgv: [] })
    for (const stream of [this.child.stdout, this.child.stderr]) stream?.setEncoding("utf8")
    this.child.once("message", () => {
      this.#ready = true
      this.#waiting?.()
    })
    this.child.once("close", () => (this.clean = false))
  }

  #send(message: Command & { readonly mark: string }): void {
    if (this.#ready) this.child.send(message)
    else this.#waiting = () => this.child.send(message)
  }

  /** Runs a command; `look` is called after each change. A command that ended the process has the process's own end. */
  start(command: Command, look: () => void, ends: () => void): Started {
    const mark = `\0${randomUUID()}\0`
    const { child } = this
    const text = { stdout: "", stderr: "" }
    let report: Report | undefined
    let ended: Ended | undefined
    const end = (result: Ended) => {
      if (ended !== undefined) return
      ended = result
      child.off("message", onMessage).off("close", onClose)
      child.stdout?.off("data", onStdout)
      child.stderr?.off("data", onStderr)
      ends()
    }
    const settle = () => {
      if (report !== undefined && text.stdout.endsWith(mark) && text.stderr.endsWith(mark)) {
        for (const stream of ["stdout", "stderr"] as const) text[stream] = text[stream].slice(0, -mark.length)
        if (!report.clean) this.clean = false
        end({ code: report.code, signal: null, ...text })
      }
      look()
    }
    const onStdout = (part: string) => {
      text.stdout += part
      settle()
    }
    const onStderr = (part: string) => {
      text.stderr += part
      settle()
    }
    const onMessage = (message: Report) => {
      if (message.mark !== mark) return
      report = message
      settle()
    }
    const onClose = (code: number | null, signal: NodeJS.Signals | null) => {
      end({ code, signal, ...text })
      look()
    }
    child.on("message", onMessage).once("close", onClose)
    child.stdout?.on("data", onStdout)
    child.stderr?.on("data", onStderr)
    this.#send({ ...command, mark })
    return {
      pid: child.pid ?? 0,
      text,
      get ended() {
        return ended
      },
      signal: (name) => {
        this.clean = false
        child.kill(name)
      }
    }
  }
}

/** Processes that wait for a command, by bundle. They end with the worker, when their channel closes. */
const idle = new Map<string, Array<Warm>>()

const idleOf = (bin: string): Array<Warm> => {
  const known = idle.get(bin)
  if (known !== undefined) return known
  const none: Array<Warm> = []
  idle.set(bin, none)
  return none
}

/** Starts a command; `look` is called whenever its output grows and when it ends. */
export const startWarm = (bin: string, command: Command, look: () => void): Started => {
  const waiting = idleOf(bin)
  let next = waiting.pop()
  while (next?.clean === false) next = waiting.pop()
  const warm = next ?? new Warm(bin)
  return warm.start(command, look, () => {
    if (warm.clean) waiting.push(warm)
    else warm.child.kill("SIGKILL")
  })
}
