/**
 * Owns the tools of one Location: built-in tools, above them the host's, above those the Location's own registrations.
 * Decides which tools an agent is offered, and settles calls. The runner starts, records and interrupts calls. Spec:
 * TO-1..TO-6, TO-15, TO-16.
 */
import type * as Tool from "@effect/ai/Tool"
import { Context, Data, Effect, Layer } from "effect"
import type { CurrentLocation, StoredError } from "@daybook/log/domain/Values"
import type { Agent } from "../domain/Agent.ts"
import { deniesAll, matches } from "../domain/Rule.ts"
import { type ToolDeclined, ToolFailure, type ToolStorageError } from "../domain/ToolError.ts"
import type { ToolOutput } from "../domain/ToolOutput.ts"
import { Permission } from "../permission/Permission.ts"
import { fitContent, Pictures } from "../picture/Pictures.ts"
import { ToolOutputStore } from "../workspace/ToolOutputStore.ts"
import { entryOf, HostTools, makeToolOverlay, type ToolOverlay } from "./HostTools.ts"
import { refusalOf } from "./LenientInput.ts"
import type { ToolCall, ToolDefinition } from "./ToolDefinition.ts"

/** A call's outcome, as stored and shown to the model. */
export type CallOutcome = Data.TaggedEnum<{
  Success: { readonly output: ToolOutput }
  Failure: { readonly error: StoredError }
}>
/** Makes and matches settlements. */
export const CallOutcome = Data.taggedEnum<CallOutcome>()

export interface MaterializedTools {
  readonly definitions: ReadonlyArray<Tool.Any>
  /** Whether a call of this name changes no files: the tool only reads, or there is no such tool. */
  readonly isReadOnly: (name: string) => boolean
  /**
   * Runs a call to its end. A tool that was not offered, or was replaced since, results in a `Failure`. Fails with
   * `ToolDeclined` if a person stops the run (TO-5), with `ToolStorageError` if the drain must fail (TO-6).
   */
  readonly settle: (request: {
    readonly name: string
    readonly input: unknown
    readonly call: ToolCall
  }) => Effect.Effect<CallOutcome, ToolDeclined | ToolStorageError>
}

export interface RequestTools {
  /** Name patterns, on or off; the last match decides. */
  readonly overrides?: Readonly<Record<string, boolean>> | undefined
  /** Tools of this request only, above all others. */
  readonly extra?: ReadonlyArray<ToolDefinition>
}

const turnedOff = (name: string, overrides: Readonly<Record<string, boolean>>): boolean =>
  Object.entries(overrides).findLast(([pattern]) => matches(pattern, name))?.[1] === false

/** What `ToolRegistry` offers. */
export interface Service {
  /** Adds tools until the scope closes, which uncovers the tools below (TO-15). */
  readonly register: ToolOverlay["register"]
  /** The tools that an agent may use now: no tool that a rule denies for `*` or that the request turns off. */
  readonly materialize: (agent: Agent, request?: RequestTools) => Effect.Effect<MaterializedTools>
}

/**
 * The tools of one Location.
 *
 * @example
 * ```ts
 * import { type Agent, ToolRegistry } from "@daybook/core"
 * import { Effect } from "effect"
 *
 * // The tools that an agent may use now.
 * export const toolsOf = (agent: Agent.Agent) =>
 *   Effect.flatMap(ToolRegistry.ToolRegistry, ({ materialize }) => materialize(agent))
 * ```
 */
export class ToolRegistry extends Context.Tag("@daybook/core/ToolRegistry")<ToolRegistry, Service>() {}

/** Longer messages are truncated to this length. */
const maximumMessage = 8_000

const failed = (type: string, message: string) =>
  CallOutcome.Failure({
    error: { type, message: message.length <= maximumMessage ? message : `${message.slice(0, maximumMessage)}...` }
  })

const withdrawn = (name: string, why: string | undefined) =>
  new ToolFailure({
    type: "tool.stale",
    message: why ?? `tool "${name}" was withdrawn or replaced after it was offered; nothing was done`
  })

/** Requests permission for tools that cannot request it themselves (TO-16). */
const authorize = (permission: Permission["Type"], definition: ToolDefinition, input: unknown, call: ToolCall) =>
  definition.authorize === undefined
    ? Effect.void
    : Effect.flatMap(definition.authorize(input), (asked) =>
        permission.authorize({
          ...call,
          ...asked,
          tool: definition.tool.name,
          permission: definition.permission,
          subject: Effect.succeed(asked.subject ?? { type: "call", input })
        })
      )

/** Fits pictures into the result; fails if nothing of the result can be shown. */
const fitPictures = (pictures: Pictures["Type"], output: ToolOutput): Effect.Effect<ToolOutput, ToolFailure> =>
  Effect.flatMap(fitContent(pictures, output.content), ({ content, nothing }) =>
    nothing
      ? new ToolFailure({
          type: "picture.refused",
          message: content.map((item) => (item.type === "text" ? item.text : "")).join("\n")
        })
      : Effect.succeed({ ...output, content })
  )

const make = Effect.fnUntraced(function* (builtins: ReadonlyArray<ToolDefinition>) {
  const host = yield* HostTools
  const outputs = yield* ToolOutputStore
  const permission = yield* Permission
  const pictures = yield* Pictures
  const own = makeToolOverlay()
  const base = new Map(builtins.map((definition) => [definition.tool.name, entryOf(definition)]))

  const current = (name: string) => own.get(name) ?? host.get(name) ?? base.get(name)

  const materialize = (agent: Agent, { extra = [], overrides = {} }: RequestTools = {}): MaterializedTools => {
    const added = new Map(extra.map((definition) => [definition.tool.name, entryOf(definition)]))
    const names = [...new Set([...base.keys(), ...host.names(), ...own.names()])]
    const offered = new Map(
      [
        ...names.flatMap((name) => {
          const entry = current(name)
          return entry === undefined ||
            added.has(name) ||
            deniesAll(agent.permissions, entry.definition.permission) ||
            turnedOff(name, overrides)
            ? []
            : [[name, entry] as const]
        }),
        ...added
      ].sort(([a], [b]) => (a < b ? -1 : 1))
    )
    const settle: MaterializedTools["settle"] = Effect.fn("ToolRegistry.settle")(function* ({ call, input, name }) {
      yield* Effect.annotateCurrentSpan({ "tool.name": name, "tool.call": call.callID })
      const entry = offered.get(name)
      if (entry === undefined) {
        const known = offered.size === 0 ? "there are none" : `there are: ${[...offered.keys()].join(", ")}`
        return failed("tool.unknown", host.whyMissing(name) ?? `there is no tool "${name}"; ${known}`)
      }
      const refusal = refusalOf(input)
      if (refusal !== undefined) return failed("tool.input", refusal)
      // A question may take long, so the tool is looked up again after it.
      const there = Effect.suspend(() =>
        added.get(name) === entry || current(name) === entry ? Effect.void : withdrawn(name, host.whyMissing(name))
      )
      return yield* there.pipe(
        Effect.zipRight(authorize(permission, entry.definition, input, call)),
        Effect.zipRight(there),
        Effect.zipRight(Effect.suspend(() => entry.definition.execute(input, call))),
        Effect.flatMap((output) => fitPictures(pictures, output)),
        Effect.flatMap((output) => outputs.bound({ sessionID: call.sessionID, callID: call.callID }, output)),
        Effect.map((output) => CallOutcome.Success({ output })),
        Effect.catchTags({
          ToolFailure: ({ message, type }) => Effect.succeed(failed(type, message)),
          MediaLimitError: ({ message }) => Effect.succeed(failed("tool.output", message))
        })
      )
    })
    const isReadOnly = (name: string) => {
      const entry = offered.get(name)
      return entry === undefined || entry.definition.readOnly === true
    }
    return { definitions: [...offered.values()].map(({ wire }) => wire(agent)), isReadOnly, settle }
  }

  return ToolRegistry.of({
    register: own.register,
    materialize: (agent, request) => Effect.sync(() => materialize(agent, request))
  })
})

export type Builtins = Effect.Effect<
  ReadonlyArray<ToolDefinition>,
  never,
  CurrentLocation | Permission | ToolOutputStore
>

export const layer = <E, R>(
  builtins: Effect.Effect<ReadonlyArray<ToolDefinition>, E, R>
): Layer.Layer<ToolRegistry, E, R | HostTools | Permission | ToolOutputStore> =>
  Layer.effect(ToolRegistry, Effect.flatMap(builtins, make))
