/**
 * Answers the calls of clients with live shells. The socket, its path and the process are the caller's.
 * Spec: SL-170..SL-179 in specs/shell.md.
 *
 *   socket -> RpcServer -> Shells;  no shell for a while -> `idle` -> the caller ends
 */
import * as RpcServer from "@effect/rpc/RpcServer"
import { Chunk, Deferred, type Duration, Effect, Layer, Mailbox, Option, Queue, Stream, SubscriptionRef } from "effect"
import type { CreateOptions, ExecOptions, Flow } from "../ShellOptions.ts"
import type * as Shells from "../Shells.ts"
import type { OutputStream } from "../output/OutputStore.ts"
import * as HostProtocol from "./HostProtocol.ts"
import {
  Begun,
  Ended,
  type ExecNews,
  type ExecRequest,
  type Hello,
  HostBusy,
  HostEnding,
  Printed,
  ShellRpcs
} from "./HostProtocol.ts"

// Holds what a running command has printed until its reader takes it; the command waits while much is held.

/** Characters that are held when the command begins to wait, and at most. */
const many = 262_144
const most = 4_194_304

interface LiveText {
  readonly add: (stream: OutputStream, text: string, flow: Flow) => void
  /** Nothing more is added. */
  readonly end: Effect.Effect<void>
  /** What is held, at least one text; none at the end. The command may print again. */
  readonly take: Effect.Effect<ReadonlyArray<Printed>, Option.Option<never>>
}

export const makeLiveText: Effect.Effect<LiveText> = Effect.gen(function* () {
  const bell = yield* Queue.sliding<void>(1)
  let held: Array<Printed> = []
  let characters = 0
  let omitted = 0
  let ended = false
  let flow: Flow | undefined
  const ring = () => void bell.unsafeOffer(undefined)

  const taken = (): ReadonlyArray<Printed> => {
    const texts = held
    if (omitted > 0) {
      texts.push(Printed.make({ stream: "stderr", text: `\n[... ${omitted} characters left out ...]\n` }))
    }
    held = []
    characters = 0
    omitted = 0
    flow?.resume()
    return texts
  }

  const take: LiveText["take"] = Effect.suspend(() => {
    if (held.length > 0 || omitted > 0) return Effect.succeed(taken())
    return ended ? Effect.fail(Option.none()) : Effect.zipRight(Queue.take(bell), take)
  })

  return {
    add: (stream, text, now) => {
      flow = now
      if (characters + text.length > most) omitted += text.length
      else {
        const last = held.at(-1)
        if (last?.stream === stream) held[held.length - 1] = Printed.make({ stream, text: last.text + text })
        else held.push(Printed.make({ stream, text }))
        characters += text.length
      }
      if (characters > many) now.pause()
      ring()
    },
    end: Effect.sync(() => {
      ended = true
      ring()
    }),
    take
  }
})

/** Calls that run or wait at the same time. */
const mostCalls = 256
/** Texts of input that wait until a command reads them. */
const mostWaiting = 4

export interface Options {
  readonly hello: Hello
  readonly shells: Shells.Shells["Type"]
  /** How long the host stays without a shell. */
  readonly linger: Duration.DurationInput
}

type Running = { readonly stop: Deferred.Deferred<void>; readonly input: Mailbox.Mailbox<string> | undefined }

/** Runs commands for calls that name them. */
const makeExec = (shells: Shells.Shells["Type"]) => {
  const running = new Map<string, Running>()

  const optionsOf = (request: ExecRequest, { input, stop }: Running, text: LiveText): ExecOptions => ({
    stop: Deferred.await(stop),
    ...(request.budget === undefined ? {} : { budget: request.budget }),
    ...(request.timeoutSeconds === undefined ? {} : { timeoutSeconds: request.timeoutSeconds }),
    ...(input === undefined ? {} : { input: Mailbox.toStream(input) }),
    ...(request.live === true ? { onText: text.add } : {})
  })

  const exec = Effect.fnUntraced(function* (request: ExecRequest) {
    const { call, command, id, interactive } = request
    const text = yield* makeLiveText
    const stop = yield* Deferred.make<void>()
    const input = interactive === true ? yield* Mailbox.make<string>(mostWaiting) : undefined
    const own: Running = { stop, input }
    yield* Effect.acquireRelease(
      Effect.sync(() => running.set(call, own)),
      () =>
        Effect.zipRight(
          Effect.sync(() => running.get(call) === own && running.delete(call)),
          input?.shutdown ?? Effect.void
        )
    )
    const ended = yield* Effect.forkScoped(
      Effect.ensuring(shells.exec(id, command, optionsOf(request, own, text)), text.end)
    )
    const printed: Stream.Stream<ExecNews> = Stream.repeatEffectChunkOption(
      Effect.map(text.take, Chunk.unsafeFromArray)
    )
    const end = Effect.map(ended, (result): ExecNews => Ended.make({ result }))
    return Stream.make<[ExecNews]>(Begun.make({})).pipe(Stream.concat(printed), Stream.concat(end))
  })

  return {
    exec: (request: ExecRequest) => Stream.unwrapScoped(exec(request)),
    stop: (call: string) =>
      Effect.suspend(() => {
        const found = running.get(call)
        return found === undefined ? Effect.void : Effect.asVoid(Deferred.succeed(found.stop, undefined))
      }),
    input: (call: string, text: string, end: boolean) =>
      Effect.suspend(() => {
        const input = running.get(call)?.input
        if (input === undefined) return Effect.void
        const sent = text === "" ? Effect.void : input.offer(text)
        return Effect.asVoid(end ? Effect.zipRight(sent, input.end) : sent)
      })
  }
}

/** Counts calls, and refuses those beyond the limit. */
const makeAdmission = Effect.map(SubscriptionRef.make(0), (calls) => {
  const enter = SubscriptionRef.updateEffect(calls, (count) =>
    count >= mostCalls ? Effect.fail(new HostBusy({ limit: mostCalls })) : Effect.succeed(count + 1)
  )
  const leave = SubscriptionRef.update(calls, (count) => count - 1)
  return {
    call: <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      Effect.acquireUseRelease(
        enter,
        () => effect,
        () => leave
      ),
    stream: <A, E, R>(stream: Stream.Stream<A, E, R>) =>
      Stream.unwrapScoped(
        Effect.as(
          Effect.acquireRelease(enter, () => leave),
          stream
        )
      ),
    none: Stream.runDrain(Stream.takeUntil(calls.changes, (count) => count === 0))
  }
})

/** A client is the user: a sandboxed shell may write the folders that the creation names. */
const writableOf = ({ target, workspace }: CreateOptions): Pick<CreateOptions, "writable"> =>
  target.transport === "local" ? { writable: [target.cwd, workspace].filter((folder) => folder !== undefined) } : {}

export const make = Effect.fnUntraced(function* ({ hello, linger, shells }: Options) {
  let ending = false
  let creating = 0
  const exec = makeExec(shells)
  const admission = yield* makeAdmission

  /** Counted from the check on: a host that ends has begun no shell. */
  const create = (options: CreateOptions): Effect.Effect<string, Shells.CreateError | HostEnding> =>
    Effect.suspend((): Effect.Effect<string, Shells.CreateError | HostEnding> => {
      if (ending) return Effect.fail(new HostEnding())
      creating += 1
      return Effect.ensuring(
        shells.create({ ...options, ...writableOf(options) }),
        Effect.sync(() => (creating -= 1))
      )
    })

  const handlers = ShellRpcs.toLayer({
    hello: () => Effect.succeed(hello),
    create: (request) => admission.call(create(request)),
    exec: (request) => admission.stream(exec.exec(request)),
    stop: ({ call }) => exec.stop(call),
    input: ({ call, end, text }) => exec.input(call, text, end),
    list: () => shells.list,
    destroy: ({ id }) => shells.destroy(id),
    checkpoint: ({ id, label }) => admission.call(shells.checkpoint(id, label)),
    checkpoints: ({ id }) => admission.call(shells.checkpoints(id)),
    restore: ({ checkpointID, id }) => admission.call(shells.restore(id, checkpointID))
  })

  const none = shells.count.changes.pipe(
    Stream.flatMap((count) => (count === 0 ? Stream.fromEffect(Effect.sleep(linger)) : Stream.never), { switch: true }),
    Stream.runHead
  )
  const idle: Effect.Effect<void> = Effect.gen(function* () {
    yield* none
    ending = true
    if (creating === 0 && (yield* shells.count.get) === 0) return
    ending = false
    yield* idle
  })

  return {
    /** Answers clients until the scope ends. */
    serve: Effect.asVoid(
      Layer.build(
        RpcServer.layer(ShellRpcs, { disableTracing: true, disableFatalDefects: true }).pipe(
          Layer.provide(handlers),
          Layer.provide(RpcServer.layerProtocolSocketServer),
          Layer.provide(HostProtocol.layerHost)
        )
      )
    ),
    /** Refuses new shells from now on. */
    refuse: Effect.sync(() => void (ending = true)),
    /** Completes when no call runs. */
    settled: admission.none,
    /** Completes when no shell has been open for long; new shells are refused from then on. */
    idle
  }
})

export type HostServer = Effect.Effect.Success<ReturnType<typeof make>>
