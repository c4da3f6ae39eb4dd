/**
 * One live shell: starts it, runs one command after another in it, and stops a command with everything that it started. It
 * knows bytes and exit codes; `../Shells.ts` makes results of them. Spec: SL-13..SL-19, SL-23 in specs/shell.md.
 */
import { constants } from "node:os"
import { performance } from "node:perf_hooks"
import { Context, Deferred, Duration, Effect, type Exit as Outcome, FiberId, FiberSet, Runtime } from "effect"
import type { Breach } from "@daybook/core/child/SandboxWatch"
import { drain, Grace, pause } from "@daybook/core/child/ShellProcess"
import { TransportFailed } from "../domain/ShellError.ts"
import { type Exit, type Listener, lostExit, type Program, type Transport } from "../transport/Program.ts"
import * as Dialogue from "./Dialogue.ts"
import type { Sink } from "./Dialogue.ts"
import * as Keeper from "./Keeper.ts"
import { firstOf } from "./Keeper.ts"
import { bootstrap, type Dialect, end, line, noFolder, noteLine, setup } from "./ShellScripts.ts"

// Ends a command that runs too long: one fiber for all commands of a shell, because a fiber for each costs a tenth of a
// short command.

/** The scope's end ends the wait. */
export const makeDeadline = Effect.gen(function* () {
  const clock = yield* Effect.clock
  const scope = yield* Effect.scope
  const fork = Runtime.runFork(yield* Effect.runtime())
  let due: { readonly at: number; readonly call: () => void } | undefined
  /** When the fiber wakes. It does not wake for each command: most have ended by then. */
  let wakes = Infinity
  let sleeper: ReturnType<typeof fork> | undefined

  const watch: Effect.Effect<void> = Effect.suspend(() => {
    wakes = due?.at ?? Infinity
    if (due === undefined) return Effect.void
    const left = due.at - clock.unsafeCurrentTimeMillis()
    if (left > 0) return Effect.zipRight(clock.sleep(Duration.millis(left)), watch)
    const { call } = due
    due = undefined
    wakes = Infinity
    return Effect.sync(call)
  })
  return {
    /** Calls back after this time, unless `clear` comes before. */
    set: (millis: number, call: () => void) => {
      due = { at: clock.unsafeCurrentTimeMillis() + millis, call }
      if (due.at >= wakes) return
      sleeper?.unsafeInterruptAsFork(FiberId.none)
      sleeper = fork(watch, { scope })
    },
    clear: () => {
      due = undefined
    }
  }
})

/** How long a shell may take to read a command's line. */
const readMillis = 10_000
/** How often both are repeated. A child loses an interrupt while it starts; a shell loses the line that it reads. */
const againMillis = 500
/** How long a command may run before the shell is asked to say that it reads lines again. Most commands have ended then. */
const noteMillis = 25
/**
 * How often the keeper is asked whether the shell is between commands. While a command runs, each next question comes later, up
 * to `longestBetweenMillis`.
 */
const betweenMillis = 250
const longestBetweenMillis = 2_000
/** How often the keeper must say so in turn before the shell is given up: so often, no line is still on its way. */
export class TimesBetween extends Context.Reference<TimesBetween>()("@daybook/shell/TimesBetween", {
  defaultValue: () => 16
}) {}
/** Characters of a command whose line arrives within that time, also from afar. */
const longestShort = 4_096
/** How long the last output may take after the shell has ended. */
const drainMillis = 50
/** How long a shell may take to start. */
const startMillis = 20_000

export interface Command {
  readonly text: string
  /** File that is the command's standard input; `/dev/null` by default. */
  readonly input?: string
  /** Completes when the command has to stop; never by default. */
  readonly stop?: Effect.Effect<void> | undefined
  /** The command is stopped after so many milliseconds; never by default. */
  readonly timeoutMillis?: number
  /** Runs after an interruption has stopped the command. */
  readonly onInterrupt?: (ended: CommandEnd) => Effect.Effect<void>
}

/** Why a shell ended by itself. */
export type Ending = "exited" | "timeout" | "lost" | Breach

export interface CommandEnd {
  /** 124 if the command was stopped. */
  readonly code: number
  /** The working folder after the command. */
  readonly cwd: string
  readonly stopped: boolean
  /** It was stopped because of its timeout. */
  readonly timedOut: boolean
  /** The shell has ended too. */
  readonly closed: Ending | undefined
}

export interface LiveShell {
  readonly dialect: Dialect
  /** The working folder after the last command. */
  readonly cwd: () => string
  /**
   * Runs a command; the caller runs one at a time. Undefined if the shell has ended before. An interruption stops the command
   * and completes when nothing of it runs any more.
   */
  readonly run: (command: Command, sinks: Dialogue.Sinks) => Effect.Effect<CommandEnd | undefined>
  /** The shell waits when it prints more, until `resume` or until its command is stopped. */
  readonly pause: () => void
  readonly resume: () => void
  /** Completes when the shell has ended by itself. */
  readonly ended: Effect.Effect<Ending>
}

export interface Options {
  readonly cwd: string | undefined
  /** Takes what background jobs print while no command runs. */
  readonly late: Sink
}

/** 128 + n after signal n; 255 if the end is not known. */
const exitCode = ({ code, signal }: Exit): number => {
  if (code !== null) return code
  const number = Object.entries(constants.signals).find(([name]) => name === signal)?.[1]
  return number === undefined ? 255 : 128 + number
}

const hundredths = (): number => performance.now() / 10

/** How far the keeper's time is ahead of this process's: at most that far, so that no command seems to begin too late. */
const aheadOf = (answer: string): number => {
  const time = Number(answer.split(" ")[1])
  return Number.isInteger(time) ? time - hundredths() : 0
}

type StartedShell = { readonly dialect: Dialect; readonly pid: number }

/** Reads what the bootstrap prints. */
const makeGreeting = (mark: string, found: (started: StartedShell) => void) => {
  const texts = { stdout: "", stderr: "" }
  const form = new RegExp(`${mark} (bash|sh) (\\d+)\\n`)
  const take: Listener = (stream, bytes) => {
    texts[stream] = (texts[stream] + Buffer.from(bytes).toString("utf8")).slice(-4_096)
    const match = form.exec(texts.stdout)
    if (match !== null) found({ dialect: match[1] === "bash" ? "bash" : "sh", pid: Number(match[2]) })
  }
  return { take, complaint: () => texts.stderr.trim() }
}

/** Runs the bootstrap, and gives the program's output to `dialogue` once the shell is started. */
const boot = Effect.fnUntraced(function* (
  transport: Transport,
  { cwd }: Options,
  mark: string,
  dialogue: Dialogue.Dialogue
) {
  const program = yield* transport.runShell(bootstrap({ cwd, mark, token: mark }))
  const started = yield* Deferred.make<StartedShell, TransportFailed>()
  const greeting = makeGreeting(mark, (found) => {
    take = dialogue.take
    Deferred.unsafeDone(started, Effect.succeed(found))
  })
  let take = greeting.take
  program.listen((stream, bytes) => take(stream, bytes))
  const failed = (details: string) => new TransportFailed({ transport: transport.name, reason: "no shell", details })
  const early = Effect.flatMap(Effect.zipLeft(program.exit, drain(drainMillis)), (exit) => {
    const complaint = greeting.complaint()
    return Deferred.fail(
      started,
      exit.code === noFolder
        ? failed(`the shell cannot start in ${cwd}: ${complaint}`)
        : failed(`the shell did not start: ${complaint || `exit code ${exitCode(exit)}`}`)
    )
  })
  const late = Effect.zipRight(
    pause(startMillis),
    Deferred.fail(started, failed(`the shell did not start within ${startMillis / 1_000} seconds`))
  )
  yield* Effect.forkScoped(Effect.all([early, late], { concurrency: 2 }))
  return { program, ...(yield* Deferred.await(started)) }
})

/** The shell's number for the keeper: in a sandbox, the shell knows another one. */
const placeOf = (transport: Transport, { pid, program }: StartedShell & { readonly program: Program }) => {
  if (transport.sandbox === undefined) return Effect.succeed({ pid, init: undefined })
  const found = program.outside?.()
  return found === undefined
    ? Effect.fail(
        new TransportFailed({
          transport: transport.name,
          reason: "no shell",
          details: "the shell's process in its sandbox was not found"
        })
      )
    : Effect.succeed({ pid: found.program, init: found.init })
}

interface RunningShell extends StartedShell {
  readonly program: Program
  /** How far the keeper's time is ahead. */
  readonly ahead: number
  /** Kills the shell with everything that it started when the keeper has ended. */
  readonly finish: Effect.Effect<void>
}

/** Runs commands in a started shell. */
const makeRunner = Effect.fnUntraced(function* (
  { ahead, dialect, finish, pid, program }: RunningShell,
  keeper: Keeper.Keeper,
  dialogue: Dialogue.Dialogue
) {
  // So long may a command take to end after an interrupt before it is killed, and the shell to answer before it is closed.
  const graceMillis = yield* Grace
  const timesBetween = yield* TimesBetween
  const ended = yield* Deferred.make<{ readonly exit: Exit; readonly ending: Ending }>()
  let ending: Ending | undefined
  let number = 0
  let isShort = true
  /** Number of the command that is watched. */
  let watched = 0
  let errors: Dialogue.Quiet | undefined
  let sentAt = 0
  // A running command may wait for its reader. What stops it reads to the end, and is not stopped again.
  let isFree = false
  let isPaused = false
  const resume = () => {
    isPaused = false
    program.resume()
  }
  const read = () => {
    isFree = false
    resume()
  }
  let timedOut = false
  const halt = () => {
    if (isFree) dialogue.halt(true)
  }
  const deadline = yield* makeDeadline
  const expire = () => {
    timedOut = isFree
    halt()
  }
  yield* Effect.forkScoped(
    Effect.gen(function* () {
      const first = yield* firstOf(program.exit, Effect.as(keeper.exit, "keeper" as const))
      const exit = first === "keeper" ? yield* Effect.as(finish, lostExit) : first
      yield* drain(drainMillis)
      ending ??= exit.breach ?? (exit.code === null && exit.signal === null ? "lost" : "exited")
      yield* Deferred.succeed(ended, { exit, ending })
      dialogue.close()
    })
  )
  const asEnded = (code: number, stopped: boolean): CommandEnd => {
    errors?.end()
    return { code, cwd: dialogue.cwd(), stopped, timedOut: stopped && timedOut, closed: ending }
  }

  const askAgain = Effect.suspend(() => program.write(end(dialect, dialogue.again())))
  /** Waits for the command's end, and asks for it if the shell reads lines again and has not reported it. */
  const settled = (millis?: number): Effect.Effect<Dialogue.News> =>
    Effect.flatMap(dialogue.news(millis), (news) =>
      news === "aborted" ? Effect.zipRight(askAgain, settled(millis ?? readMillis)) : Effect.succeed(news)
    )
  const answered = settled()
  /** Gives a shell up that is between commands and reports no end, because `set -n` or a trap keeps it from running the frame. */
  const watch = Effect.fnUntraced(function* (asked: number, isShort: boolean) {
    for (let times = 0, millis = betweenMillis; times < timesBetween;) {
      yield* pause(millis)
      if (number !== asked || !isFree) return
      const answer = yield* keeper.ask({ order: "between" })
      const isBetween = answer === "between yes" && !isPaused && (isShort || dialogue.hasBegun())
      times = isBetween ? times + 1 : 0
      millis = isBetween ? betweenMillis : Math.min(millis * 2, longestBetweenMillis)
    }
    if (number === asked && isFree) dialogue.giveUp()
  })
  const fork = yield* FiberSet.makeRuntime<never>()
  // One timer for all commands, because to start and stop one costs more than to begin again.
  const noter = setTimeout(() => {
    if (!isFree) return
    if (watched !== number) fork(watch(number, isShort))
    watched = number
    if (dialogue.hasBegun()) program.send(noteLine(dialect, dialogue.note()))
    else noter.refresh()
  }, noteMillis).unref()
  yield* Effect.addFinalizer(() => Effect.sync(() => clearTimeout(noter)))

  const running = () => ({ number, since: Math.floor(sentAt + ahead) })

  /** One after the other: what answers the question of the last order reads lines, and no signal is on its way. */
  const ordered = Effect.fnUntraced(function* (order: "interrupt" | "kill") {
    for (let waited = 0; waited < graceMillis; waited += againMillis) {
      yield* keeper.ask({ order, dialect, again: waited > 0, ...running() })
      yield* askAgain
      const news = yield* settled(againMillis)
      if (news !== "late") return news
    }
    return "late"
  })

  /** Interrupts the command, then kills it. Closes the shell if it does not answer. */
  const stop = Effect.gen(function* () {
    read()
    dialogue.halt(false)
    // A signal before would discard a part of the command's line, and the shell would run the rest.
    const begun = yield* firstOf(Effect.as(dialogue.begun, true), Effect.as(pause(readMillis), false))
    const asked = begun ? yield* ordered("interrupt") : "late"
    const news = begun && asked === "late" ? yield* ordered("kill") : asked
    if (news === "answered") yield* keeper.ask({ order: "reap", ...running() })
    else {
      if (news === "late") ending = "timeout"
      // Also when the shell has ended by itself: what it started runs on.
      yield* keeper.ask({ order: "finish" })
      yield* Deferred.await(ended)
    }
    return asEnded(124, true)
  })

  /** The end of a command. Undefined if the shell exited before it read the command's line. */
  const finished = (): Effect.Effect<CommandEnd | undefined> =>
    ending === undefined
      ? Effect.succeed(asEnded(dialogue.code(), false))
      : Effect.map(Deferred.await(ended), ({ exit }) =>
          ending === "exited" && !dialogue.hasRun() ? undefined : asEnded(exitCode(exit), false)
        )

  /** Closes a shell that reads lines and cannot report a command's end. */
  const giveUp = Effect.suspend(() => {
    read()
    return Effect.zipRight(keeper.ask({ order: "finish" }), Deferred.await(ended))
  })

  const begin = ({ input, text, timeoutMillis }: Command, sinks: Dialogue.Sinks) => {
    const before = dialogue.code()
    number += 1
    isShort = text.length <= longestShort
    sentAt = hundredths()
    isFree = true
    timedOut = false
    errors = Dialogue.without(pid, sinks.stderr)
    const token = dialogue.begin({ stdout: sinks.stdout, stderr: errors.add })
    program.send(line(dialect, { token, number, command: text, before, input }))
    noter.refresh()
    if (timeoutMillis !== undefined) deadline.set(timeoutMillis, expire)
  }

  /** The end of a command, or its stop. */
  const settle = (
    news: Outcome.Exit<Dialogue.News>,
    onInterrupt: Command["onInterrupt"]
  ): Effect.Effect<CommandEnd | undefined> => {
    deadline.clear()
    if (news._tag === "Success" && news.value === "late") return Effect.flatMap(giveUp, finished)
    if (news._tag === "Success" && news.value !== "halted") {
      read()
      return finished()
    }
    if (news._tag === "Success") return stop
    return Effect.zipRight(
      onInterrupt === undefined ? stop : Effect.flatMap(stop, onInterrupt),
      Effect.failCause(news.cause)
    )
  }

  const run: LiveShell["run"] = (command, sinks) =>
    Effect.uninterruptibleMask((restore) => {
      if (ending !== undefined) return Effect.succeed(undefined)
      begin(command, sinks)
      const news = Effect.exit(restore(answered))
      const until = command.stop
      if (until === undefined) return Effect.flatMap(news, (each) => settle(each, command.onInterrupt))
      return Effect.gen(function* () {
        const watch = yield* Effect.forkDaemon(Effect.interruptible(Effect.map(until, halt)))
        const each = yield* news
        watch.unsafeInterruptAsFork(watch.id())
        return yield* settle(each, command.onInterrupt)
      })
    })
  return {
    run,
    pause: () => {
      if (!isFree) return
      isPaused = true
      program.pause()
    },
    resume,
    read,
    ended: Effect.map(Deferred.await(ended), ({ ending: why }) => why)
  }
})

/** Opens a shell. The scope's end kills it with everything that it started. */
export const open = Effect.fn("LiveShell.open")(function* (transport: Transport, options: Options) {
  const mark = Dialogue.makeToken()
  // What the shell prints before it is set up, such as a prompt, is no job's output.
  let late: Sink = () => undefined
  const dialogue = Dialogue.make((bytes) => late(bytes))
  const keeper = yield* Keeper.start(transport, mark)
  const shell = yield* boot(transport, options, mark, dialogue)
  const place = yield* placeOf(transport, shell)
  const ahead = aheadOf(yield* keeper.ask({ order: "root", ...place }))
  const finish = Keeper.finish(transport, mark, place)
  const runner = yield* makeRunner({ ...shell, ahead, finish }, keeper, dialogue)
  // Before the runner's fiber ends: a running command learns that the shell is gone.
  yield* Effect.addFinalizer(() => {
    runner.read()
    const gone = firstOf(runner.ended, Effect.flatMap(Grace, pause))
    return Effect.zipRight(keeper.ask({ order: "finish" }), gone)
  })
  yield* shell.program.write(setup(shell.dialect, mark))
  const first = yield* runner.run({ text: ":", stop: pause(startMillis) }, { stdout: late, stderr: late })
  if (first === undefined || first.closed !== undefined) {
    const details = `the shell (${shell.dialect}) ended during its start`
    return yield* new TransportFailed({ transport: transport.name, reason: "no shell", details })
  }
  late = options.late
  return { dialect: shell.dialect, cwd: dialogue.cwd, ...runner }
})
