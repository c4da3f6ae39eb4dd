/**
 * Starts commands in processes that have loaded the bundle before: loading it takes most of the time of a short command. Each
 * command has its own words, environment, working folder and input, and pipes or a terminal for its output. A process runs one
 * command at a time. It runs no other after a command that left something open, or with a signal on its way.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import { fileURLToPath } from "node:url"
import type { Ended } from "./Process.ts"

const program = fileURLToPath(new URL("warmProcess.cjs", import.meta.url))

export interface Command {
  readonly words: ReadonlyArray<string>
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
  readonly input: string | Uint8Array
}

/** The size of a terminal. */
export interface Terminal {
  readonly columns: number
  readonly rows: number
}

/** `script` of util-linux creates a terminal and exits with the command's exit code; the first line is the terminal's name. */
export const atTerminal = (command: ReadonlyArray<string>, { columns, rows }: Terminal): ReadonlyArray<string> => {
  const quoted = command.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(" ")
  return ["script", "-qefc", `tty; stty cols ${columns} rows ${rows}; exec ${quoted}`, "/dev/null"]
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
  /** How many signals arrived during the command. */
  readonly signalled: number
}

/** Signals that a command may handle and survive. */
const survivable: ReadonlyArray<NodeJS.Signals> = ["SIGINT", "SIGTERM", "SIGHUP"]

class Warm {
  readonly child: ChildProcess
  /** Whether it can run another command. */
  clean = true
  readonly #terminal: boolean
  /** The first line of a terminal's output. */
  #name = ""
  #ready: boolean = false
  #waiting: (() => void) | undefined

  constructor(bin: string, terminal: Terminal | undefined) {
    this.#terminal = terminal !== undefined
    const command = [process.execPath, program, bin]
    const [file = "", ...args] = terminal === undefined ? command : atTerminal(command, terminal)
    this.child = spawn(file, args, { stdio: ["ignore", "pipe", "pipe", "ipc"], serialization: "advanced" })
    for (const stream of [this.child.stdout, this.child.stderr]) stream?.setEncoding("utf8")
    if (this.#terminal) {
      const onName = (part: string) => {
        this.#name += part
        if (this.#name.endsWith("\n")) this.child.stdout?.off("data", onName)
      }
      this.child.stdout?.on("data", onName)
    }
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
    let sent = 0
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
      const streams = this.#terminal ? (["stdout"] as const) : (["stdout", "stderr"] as const)
      if (report !== undefined && streams.every((stream) => text[stream].endsWith(mark))) {
        for (const stream of streams) text[stream] = text[stream].slice(0, -mark.length)
        if (this.#terminal) text.stdout = this.#name + text.stdout
        if (!report.clean || report.signalled < sent) this.clean = false
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
        // `script` passes no signal on.
        if (this.#terminal || !survivable.includes(name)) this.clean = false
        sent++
        child.kill(name)
      }
    }
  }
}

/** Processes that wait for a command, by bundle and terminal. They end with the worker, when their channel closes. */
const idle = new Map<string, Array<Warm>>()

const idleOf = (key: string): Array<Warm> => {
  const known = idle.get(key)
  if (known !== undefined) return known
  const none: Array<Warm> = []
  idle.set(key, none)
  return none
}

/** Starts a command; `look` is called whenever its output grows and when it ends. */
export const startWarm = (bin: string, command: Command, terminal: Terminal | undefined, look: () => void): Started => {
  const waiting = idleOf(JSON.stringify([bin, terminal]))
  let next = waiting.pop()
  while (next?.clean === false) next = waiting.pop()
  const warm = next ?? new Warm(bin, terminal)
  return warm.start(command, look, () => {
    if (warm.clean) waiting.push(warm)
    else warm.child.kill("SIGKILL")
  })
}
