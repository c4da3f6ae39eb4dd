/** Runs a live shell's keeper: asks it to signal processes, and waits until it has. Spec: SL-16..SL-19. */
import { Deferred, Effect, Exit as Outcome, Fiber } from "effect"
import { pause } from "@daybook/core/child/ShellProcess"
import { TransportFailed } from "../domain/ShellError.ts"
import { type Exit, lostExit, type Transport } from "../transport/Program.ts"
import { abortSignal, callMark, callVariable, type Dialect, markVariable, numberOf } from "./ShellScripts.ts"

// Races two waits also where the fiber cannot be interrupted: there, a plain race would wait for its loser forever.

/**
 * Returns what ends first. The other side is interrupted and has ended. The sides are daemons: a fiber passes each interruption
 * on to its children, also where it cannot be interrupted itself.
 */
export const firstOf = <A, E, R, B, E2, R2>(
  one: Effect.Effect<A, E, R>,
  other: Effect.Effect<B, E2, R2>
): Effect.Effect<A | B, E | E2, R | R2> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const first = yield* Deferred.make<A | B, E | E2>()
      const sides = [
        yield* Effect.forkDaemon(Effect.intoDeferred(Effect.interruptible(one), first)),
        yield* Effect.forkDaemon(Effect.intoDeferred(Effect.interruptible(other), first))
      ]
      return yield* Effect.ensuring(restore(Deferred.await(first)), Fiber.interruptAll(sides))
    })
  )

// The text of the keeper, a program beside a shell that signals the shell's processes, and kills them all when its
// input ends. A process belongs to the shell if it shares the shell's session, descends from the shell, or inherited
// the shell's variable or limit. A process is stopped before it is killed, so that it cannot start others. Without
// `/proc`, only the group is killed.

/** The shell, and the first process of its sandbox, which leads the shell's group and adopts its orphans. */
export interface ShellProcesses {
  readonly pid: number
  readonly init: number | undefined
}

/** The running command: its number, and when it began, as the system counts the time of processes. */
export interface Running {
  readonly number: number
  readonly since: number
}

/**
 * One order a line. The keeper prints the order's word to standard error, NUL-terminated, when it is done; after `root` also
 * the time, as the system counts it for processes, and after `between` the word `yes` if that is known.
 */
export type Order =
  /** Names the shell. */
  | ({ readonly order: "root" } & ShellProcesses)
  /** Ends the running command's list, and interrupts or kills what the command started. `again`: it did not answer the last one. */
  | ({ readonly order: "interrupt" | "kill"; readonly dialect: Dialect; readonly again: boolean } & Running)
  /** Kills what the command started and left. */
  | ({ readonly order: "reap" } & Running)
  /** Asks whether the shell is between commands, and waits for lines or computes. While it runs one, its input is another one. */
  | { readonly order: "between" }
  /** Kills the shell and everything that it started. */
  | { readonly order: "finish" }

const orderLine = (order: Order): string => {
  switch (order.order) {
    case "root":
      return `root ${order.pid} ${order.init ?? ""}\n`
    case "reap":
      return `reap ${order.number} ${order.since}\n`
    case "interrupt":
    case "kill":
      return `${order.order} ${order.number} ${order.since} ${order.dialect} ${order.again ? "again" : ""}\n`
    case "between":
    case "finish":
      return `${order.order}\n`
  }
}

/** The keeper prints an empty text, NUL-terminated, when it is ready. */
const keeperScript = (mark: string): string =>
  `
trap '' INT TERM HUP PIPE
root= init= group= since= time= input= copies= programs=
printf '\\0' >&2
add() { case " $found " in *" $1 "*) ;; *) found="$found $1" more=yes ;; esac }
# The files of this name of the processes that are searched.
files() {
  files=
  for d in $scan; do files="$files $d/$1"; done
}
marked() {
  files environ
  for f in $(grep -lszF -- "$1" $files 2>/dev/null); do
    f=\${f#/proc/}
    f=\${f%/environ}
    [ "$f" = "$root" ] || add "$f"
  done
  files limits
  limited=
  for f in $(grep -ls "locks  *${numberOf(mark)} " $files 2>/dev/null); do
    f=\${f#/proc/}
    limited="$limited \${f%/limits}"
  done
}
# Adds descendants of what is found and, if $1 is yes, of the shell, the members of the shell's session and who has its limit.
# A copy of the shell that executes nothing has no command's mark: it belongs to the command if it started since then.
below() {
  all=$1 call=$2 more=yes
  while [ $more = yes ]; do
    more=no
    for d in $scan; do
      p=\${d#/proc/}
      case " $root $init $found " in *" $p "*) continue ;; esac
      IFS= read -r s 2>/dev/null <"$d/stat" || continue
      # From the state, field 3: then the parent, the group, the session; the start is field 22.
      set -- \${s##*) }
      [ "$1" = Z ] && continue
      case " $found " in *" $2 "*) add "$p"; continue ;; esac
      case " $limited " in
        *" $p "*) ;;
        *) [ "$2" = "$root" ] || [ "$4" = "$root" ] || [ "$4" = "$group" ] || continue ;;
      esac
      if [ "$all" = no ]; then
        [ "\${20}" -ge "$since" ] || continue
        # Another command's program. A copy can have become a program of this command since the marks were read.
        grep -qszF -- "$call" "$d/environ" || { grep -qszF ${callVariable}=${callMark(mark, "")} "$d/environ" && continue; }
      fi
      add "$p"
    done
  done
}
# $1: yes for the whole shell. $2: the mark of the processes. A process that ends before it is read may have started another one:
# after all processes, those are searched whose number was given since, the last of which is in loadavg. When there are none, and
# something was killed, all are searched again.
sweep() {
  rounds=0 quiet=0 from= again=
  while [ $rounds -lt 100 ] && [ $quiet -lt 10 ]; do
    rounds=$((rounds + 1)) quiet=$((quiet + 1)) found= scan= last=
    IFS= read -r last 2>/dev/null </proc/loadavg
    last=\${last##* }
    # The numbers can begin again.
    [ "\${from:-0}" -le "\${last:-0}" ] || from=
    for d in /proc/[0-9]*; do
      p=\${d#/proc/}
      [ -n "$from" ] && { [ "$p" -le "$from" ] || [ "$p" -gt "$last" ]; } && continue
      scan="$scan $d"
    done
    if [ -z "$scan" ]; then
      [ -n "$again" ] || return
      from= again=
      continue
    fi
    from=$last
    marked "$2"
    below "$1" "$2"
    [ -n "$found" ] || continue
    for p in $found; do kill -STOP "$p" 2>/dev/null; done
    for p in $found; do kill -KILL "$p" 2>/dev/null; done
    quiet=0 again=yes
  done
}
# Ends the list of the shell, and interrupts or kills, as $1 says, what its command started, whose mark is $2. The shell stands still
# meanwhile: it has its signal before it can see that a child has ended.
halt() {
  # An interrupt, or for bash the signal that also a user's trap of an interrupt does not withstand.
  signal=2 found=
  [ "$dialect" = bash ] && signal=${abortSignal(mark)}
  # The shell would run the rest of the list.
  [ "$1" = kill ] && ignores $signal && return
  kill -STOP "$root" 2>/dev/null
  kill -$signal "$root" 2>/dev/null
  if [ "$1" = interrupt ]; then
    # Without the kernel's list of children, only the group is known.
    if [ -r "/proc/$root/task/$root/children" ]; then interrupt; else kill -INT "-$group" 2>/dev/null; fi
  else
    [ -d /proc/self ] && sweep no "$2"
  fi
  # A command can stop its shell.
  kill -CONT "$root" 2>/dev/null
  # A shell that waits for no child can be where only an interrupt reaches it: a bash that opens a fifo.
  [ -n "$found" ] || [ "$again" != again ] || kill -INT "$root" 2>/dev/null
}
# Whether the shell ignores the signal.
ignores() {
  while read -r s mask; do
    [ "$s" = SigIgn: ] && return $((!(0x$mask >> ($1 - 1) & 1)))
  done 2>/dev/null <"/proc/$root/status"
  return 1
}
children() {
  kids=
  for c in "/proc/$1/task/"*/children; do
    s=
    IFS= read -r s 2>/dev/null <"$c"
    kids="$kids\${s:+ $s}"
  done
}
# Interrupts programs. A copy of the shell that runs a part of the list ends without its rest, but after its programs: until then
# it stands still. No command has a trap for VTALRM by chance, and bash runs a trap of EXIT then. Searches no other processes, which
# takes long: what is no descendant any more is killed later.
interrupt() {
  next= copies= programs=
  children "$root"
  for p in $kids; do
    IFS= read -r s 2>/dev/null <"/proc/$p/stat" || continue
    set -- \${s##*) }
    [ "\${20}" -ge "$since" ] && next="$next $p"
  done
  while [ -n "$next" ]; do
    found="$found$next" all=$next next=
    for p in $all; do
      children "$p"
      next="$next$kids"
    done
  done
  for p in $found; do
    if [ "/proc/$p/exe" -ef "/proc/$root/exe" ] && ! grep -qszF ${callVariable}=${callMark(mark, "")} "/proc/$p/environ"; then
      kill -STOP "$p" 2>/dev/null
      kill -VTALRM "$p" 2>/dev/null
      copies="$copies $p"
    else
      programs="$programs $p"
    fi
  done
  for p in $programs; do
    kill -INT "$p" 2>/dev/null
    kill -CONT "$p" 2>/dev/null
  done
}
# Lets the copies end when no program runs any more.
let_end() {
  [ -n "$copies" ] || return
  rounds=0
  while [ $rounds -lt 10 ] && runs $programs; do
    rounds=$((rounds + 1))
    sleep 0.02
  done
  runs $programs || for p in $copies; do kill -CONT "$p" 2>/dev/null; done
}
# Whether one of these processes runs.
runs() {
  for p in "$@"; do
    IFS= read -r s 2>/dev/null <"/proc/$p/stat" || continue
    s=\${s##*) }
    [ "\${s%% *}" = Z ] || return 0
  done
  return 1
}
# With the first process of a sandbox the kernel kills all others, before that process is gone.
end_sandbox() {
  kill -KILL "$init" 2>/dev/null
  rounds=0
  while [ $rounds -lt 500 ]; do
    IFS= read -r s 2>/dev/null <"/proc/$init/stat" || return
    s=\${s##*) }
    [ "\${s%% *}" = Z ] && return
    rounds=$((rounds + 1))
    sleep 0.01
  done
}
finish() {
  [ -n "$root" ] || return
  if [ -n "$init" ]; then
    end_sandbox
    return
  fi
  kill -STOP "$root" 2>/dev/null
  [ -d /proc/self ] && sweep yes ${markVariable}=${mark}
  kill -KILL "-$root" 2>/dev/null
  kill -KILL "$root" 2>/dev/null
}
while IFS=' ' read -r order argument first dialect again; do
  case $order in
    root)
      root=$argument init=$first group=\${first:-$argument}
      input=$(readlink "/proc/$root/fd/0" 2>/dev/null)
      IFS=' ' read -r time s 2>/dev/null </proc/uptime
      order="$order \${time%.*}\${time#*.}"
      ;;
    interrupt)
      since=$first
      halt interrupt "${callVariable}=${callMark(mark, "$argument")}"
      let_end
      ;;
    kill)
      since=$first
      halt kill "${callVariable}=${callMark(mark, "$argument")}"
      ;;
    reap)
      since=$first
      [ -d /proc/self ] && sweep no "${callVariable}=${callMark(mark, "$argument")}"
      ;;
    between)
      # The number of the system call that reads, on the machines that there are, and the descriptor.
      IFS= read -r s 2>/dev/null <"/proc/$root/syscall" || s=
      case $s in
        "0 0x0 "* | "63 0x0 "* | "3 0x0 "* | running*)
          [ -n "$input" ] && [ "$(readlink "/proc/$root/fd/0" 2>/dev/null)" = "$input" ] && order="$order yes"
          ;;
      esac
      ;;
    finish)
      finish
      root=
      ;;
  esac
  printf '%s\\0' "$order" >&2
done
finish
`

export interface Keeper {
  /** Completes with the answer when the order is carried out, or without one when the keeper has ended. */
  readonly ask: (order: Order) => Effect.Effect<string>
  readonly exit: Effect.Effect<Exit>
}

const longestReply = 16_384

/** Texts of the keeper, each NUL-terminated. */
const makeReplies = () => {
  let text = ""
  let replies: ReadonlyArray<string> = []
  let ended = false
  let waiting: ((reply: string | undefined) => void) | undefined
  const deliver = () => {
    const [first, ...rest] = replies
    if (waiting === undefined || (first === undefined && !ended)) return
    const resume = waiting
    replies = rest
    waiting = undefined
    resume(first)
  }
  return {
    add: (bytes: Uint8Array) => {
      const parts = (text + Buffer.from(bytes).toString("utf8")).split("\0")
      text = (parts.pop() ?? "").slice(-longestReply)
      replies = [...replies, ...parts]
      deliver()
    },
    rest: () => text,
    end: () => {
      ended = true
      deliver()
    },
    /** Undefined when the keeper has ended. */
    next: Effect.async<string | undefined>((resume) => {
      waiting = (reply) => resume(Effect.succeed(reply))
      deliver()
    })
  }
}

/** Time that the keeper has to kill a shell's processes before the transport is closed. */
const finishMillis = 20_000
/** Time that it has for an order. A machine that stands still, such as a paused container, carries out none. */
const orderMillis = 30_000

export const start = Effect.fn("Keeper.start")(function* (
  transport: Transport,
  mark: string,
  /** Other times are for tests. */
  millis: number = orderMillis
) {
  const program = yield* transport.run(keeperScript(mark))
  const replies = makeReplies()
  program.listen((stream, bytes) => {
    if (stream === "stderr") replies.add(bytes)
  })
  const ended = yield* Deferred.make<Exit>()
  yield* Effect.forkScoped(
    Effect.flatMap(program.exit, (exit) => {
      replies.end()
      return Deferred.succeed(ended, exit)
    })
  )
  if ((yield* replies.next) === undefined) {
    const details = `the shell's keeper did not start: ${replies.rest().trim() || "it printed nothing"}`
    return yield* new TransportFailed({ transport: transport.name, reason: "no shell", details })
  }
  const order = yield* Effect.makeSemaphore(1)
  let isSilent = false
  /** A keeper that does not answer counts as ended: a late answer must not meet another order. */
  const giveUp = () => {
    isSilent = true
    replies.end()
    Deferred.unsafeDone(ended, Outcome.succeed(lostExit))
  }
  // Each reply meets its order: nothing interrupts the wait, and it has no fibers that an interruption could reach.
  const answer = (asked: Order) =>
    Effect.suspend(() =>
      isSilent ? Effect.succeed(undefined) : Effect.zipRight(program.write(orderLine(asked)), replies.next)
    ).pipe(
      Effect.map((reply) => reply ?? ""),
      order.withPermits(1)
    )
  const inTime = <A>(wait: Effect.Effect<A>) =>
    Effect.suspend(() => {
      const timer = setTimeout(giveUp, millis)
      return Effect.ensuring(
        wait,
        Effect.sync(() => clearTimeout(timer))
      )
    })
  // A question has time: a machine may stand still as long as nothing has to be done.
  const ask = (asked: Order) =>
    Effect.uninterruptible(asked.order === "between" ? answer(asked) : inTime(answer(asked)))
  // Its end kills what is left, also if an order is lost.
  yield* Effect.addFinalizer(() =>
    Effect.zipRight(program.endInput, firstOf(Effect.asVoid(Deferred.await(ended)), pause(finishMillis)))
  )
  return { ask, exit: Deferred.await(ended) }
})

/** Kills a shell with everything that it started, in place of a keeper that has ended. */
export const finish = (transport: Transport, mark: string, place: ShellProcesses): Effect.Effect<void> =>
  Effect.gen(function* () {
    const keeper = yield* start(transport, mark)
    yield* keeper.ask({ order: "root", ...place })
    yield* keeper.ask({ order: "finish" })
  }).pipe(
    Effect.scoped,
    // Without a connection nothing more can be done.
    Effect.catchAll(() => Effect.void)
  )
