/**
 * Defines a tool: an `@effect/ai` tool (name, description, Schema parameters and result) with its handler and the
 * rendering of its result for the model. `ToolRegistry.ts` registers tools and settles calls. Spec: TO-1, TO-2, TO-3,
 * TO-16, TO-17.
 */
import * as Tool from "@effect/ai/Tool"
import type * as Toolkit from "@effect/ai/Toolkit"
import {
  Cause,
  Context,
  Effect,
  Inspectable,
  Option,
  type ParseResult,
  Predicate,
  Schema,
  type Scope,
  Tracer
} from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import type { MessageID, SessionID } from "@daybook/log/domain/Identifiers"
import type { JsonRecord, Location } from "@daybook/log/domain/Values"
import { clip, describeIssues } from "@daybook/log/support/Issues"
import { present } from "@daybook/log/support/Optional"
import type { Agent } from "../domain/Agent.ts"
import { ToolDeclined, ToolFailure, ToolStorageError } from "../domain/ToolError.ts"
import type { ToolOutput } from "../domain/ToolOutput.ts"
import type { PermissionSubject } from "../permission/PermissionSubject.ts"
import { decodeInput, objectIn } from "./LenientInput.ts"

// Builds the tool of a provider request. Its decoder accepts anything: bad input becomes a result for the model when
// the call is settled, and does not break the provider's stream (TO-107).

/** A tool with parameters from a JSON schema; it decodes any input and any result. */
export const jsonSchemaTool = (tool: {
  readonly name: string
  readonly description?: string | undefined
  readonly parameters: object
  readonly annotations?: Context.Context<never>
}): Tool.Any =>
  Tool.make(tool.name, {
    ...(tool.description === undefined ? {} : { description: tool.description }),
    success: Schema.Unknown,
    failure: Schema.Unknown
  })
    .setParameters(
      // The library types parameters as a struct, but at run time only requires a schema.
      Schema.Unknown.annotations({ jsonSchema: tool.parameters }) as unknown as Schema.Struct<Schema.Struct.Fields>
    )
    .annotateContext(tool.annotations ?? Context.empty())

export const wireTool = (tool: Tool.Any, description = tool.description): Tool.Any =>
  jsonSchemaTool({
    name: tool.name,
    description,
    parameters: Tool.getJsonSchemaFromSchemaAst(tool.parametersSchema.ast),
    annotations: tool.annotations
  })

export interface ToolCall {
  readonly sessionID: SessionID
  /** The assistant message that made the call. */
  readonly messageID: MessageID
  readonly callID: string
  readonly agent: Agent
  readonly location: Location
  /** Reports progress; the runtime bounds how often and how much of it is stored. */
  readonly progress: (update: ToolOutput) => Effect.Effect<void>
}

/** What one call needs permission for; the tool's `permission` names the action. */
export interface ToolAuthorization {
  /** What the call acts on; each resource must be allowed. */
  readonly resources: NonEmptyReadonlyArray<string>
  /** One line for the question. */
  readonly title: string
  /** Resource patterns that the answer "always" saves for the project; by default exactly the resources. */
  readonly always?: ReadonlyArray<string>
  /** The complete action, for the question; the call's input by default. */
  readonly subject?: PermissionSubject
  /** A fingerprint of a tool that others can change: "always" is valid while it is unchanged (PM-40). */
  readonly definition?: string
}

/** A tool to register, its parameter and result types erased. Its calls require the services `R`. */
export interface ToolDefinition<out R = never> {
  readonly tool: Tool.Any
  /** The permission that decides whether the tool is offered; the tool's name by default. */
  readonly permission: string
  /** The tool changes no files: a turn that calls only such tools takes no snapshots (UN-10). */
  readonly readOnly?: true
  /** The description for this agent; undefined for the tool's own. Each is kept, so there must be few. */
  readonly describe?: (agent: Agent) => string | undefined
  /**
   * The authorization that `ToolRegistry` requests before `execute`, for tools that exist in every Location and so
   * cannot request it themselves (TO-16). A failure here refuses the call without a question.
   */
  readonly authorize?: (input: unknown) => Effect.Effect<ToolAuthorization, ToolFailure>
  /** Decodes the input, runs the handler, encodes and renders the result; fails with `ToolFailure`. */
  readonly execute: (
    input: unknown,
    call: ToolCall
  ) => Effect.Effect<ToolOutput, ToolFailure | ToolDeclined | ToolStorageError, R>
}

export interface ToolOptions<Params, Success, Failure, R> {
  /**
   * Runs one call, in a scope of its own. It may fail with the tool's own failure or with `ToolFailure`; a defect is
   * reported to the model as `tool.execution` and logged. Interruption ends the call.
   */
  readonly handler: (
    params: Params,
    call: ToolCall
  ) => Effect.Effect<Success, Failure | ToolFailure | ToolDeclined | ToolStorageError, R>
  /** Renders the result for model and programs. By default a string is text, an object `structured`. */
  readonly render?: (success: Success) => ToolOutput
  readonly readOnly?: true
  /** The permission that decides whether the tool is offered; its name by default. */
  readonly permission?: string
  /** The description for this agent; undefined for the tool's own. */
  readonly describe?: (agent: Agent) => string | undefined
}

const describeFailure = (failure: unknown): string => {
  if (typeof failure === "string") return clip(failure)
  if (Predicate.hasProperty(failure, "message") && typeof failure.message === "string" && failure.message !== "") {
    return clip(failure.message)
  }
  return clip(Inspectable.toStringUnknown(failure, 0))
}

const renderEncoded = (encoded: unknown): ToolOutput => {
  if (encoded === undefined || encoded === null) return { structured: {}, content: [] }
  if (typeof encoded === "string") return { structured: {}, content: [{ type: "text", text: encoded }] }
  if (Predicate.isRecord(encoded)) {
    // A copy with string keys: JSON has no others.
    return { structured: Object.fromEntries(Object.entries(encoded)), content: [] }
  }
  return { structured: { value: encoded }, content: [] }
}

const fault = (type: string, message: string) => new ToolFailure({ type, message })

/** Logs a handler's defect with the call, and reports it to the model in a sentence (TO-2). */
const guarded = <R>(
  name: string,
  call: ToolCall,
  run: () => Effect.Effect<ToolOutput, ToolFailure | ToolDeclined | ToolStorageError, R>
) =>
  Effect.catchAllCause(Effect.suspend(run), (cause) =>
    Cause.isInterrupted(cause) || Cause.isFailure(cause)
      ? Effect.failCause(cause)
      : Effect.zipRight(
          Effect.logError(`tool "${name}" broke while it served ${call.callID}`, cause),
          fault("tool.execution", `tool "${name}" broke: ${describeFailure(Cause.squash(cause))}`)
        )
  )

/** Decodes a tool's input and encodes its result. `R` are the services that the schemas require. */
interface Codec<Params, R> {
  readonly decode: (input: unknown) => Effect.Effect<Params, ParseResult.ParseError, R>
  readonly encode: (success: unknown) => Effect.Effect<unknown, ParseResult.ParseError, R>
}

const implement = <Params, Success, Failure, R, RSchema>(
  tool: Tool.Any,
  { decode, encode }: Codec<Params, RSchema>,
  options: ToolOptions<Params, Success, Failure, R>
): ToolDefinition<Exclude<R, Scope.Scope> | RSchema> => {
  const { name } = tool
  const run = Effect.fnUntraced(function* (input: unknown, call: ToolCall) {
    const params = yield* Effect.mapError(decode(input), (error) =>
      fault("tool.input", `invalid input for tool "${name}": ${describeIssues(error, "the input")}`)
    )
    const success = yield* Effect.mapError(Effect.scoped(options.handler(params, call)), (error) =>
      error instanceof ToolFailure || error instanceof ToolStorageError
        ? error
        : error instanceof ToolDeclined
          ? new ToolDeclined({ tool: name })
          : fault("tool.execution", `tool "${name}" failed: ${describeFailure(error)}`)
    )
    const encoded = yield* Effect.mapError(encode(success), (error) =>
      fault(
        "tool.output",
        `tool "${name}" returned a result that does not match its schema: ${describeIssues(error, "the input")}`
      )
    )
    const output = options.render === undefined ? renderEncoded(encoded) : options.render(success)
    yield* Effect.try({
      try: () => JSON.stringify(output.structured),
      catch: () => fault("tool.output", `tool "${name}" returned a result that JSON cannot hold`)
    })
    return output
  })

  return {
    tool,
    permission: options.permission ?? name,
    ...present({ readOnly: options.readOnly, describe: options.describe }),
    execute: (input, call) => guarded(name, call, () => run(input, call))
  }
}

/**
 * Defines a tool with its handler. The types of `params`, of the result and of the failure come from the tool's schemas.
 * The services that the handler requires are provided where the tool is registered.
 *
 * @example
 * ```ts
 * import { HostTools, Tool } from "@daybook/core"
 * import * as AiTool from "@effect/ai/Tool"
 * import { DateTime, Effect, Schema } from "effect"
 *
 * const time = Tool.define(AiTool.make("time", { description: "The time of day", success: Schema.String }), {
 *   handler: () => Effect.map(DateTime.now, DateTime.formatIso)
 * })
 *
 * export const tools = HostTools.layerTools([time])
 * ```
 */
export const define = <
  Name extends string,
  Params extends Tool.Any["parametersSchema"] & Schema.Schema.AnyNoContext,
  Success extends Schema.Schema.AnyNoContext,
  Failure extends Schema.Schema.All,
  Mode extends Tool.FailureMode,
  R = never
>(
  tool: Tool.Tool<Name, { parameters: Params; success: Success; failure: Failure; failureMode: Mode }>,
  options: ToolOptions<Schema.Schema.Type<Params>, Schema.Schema.Type<Success>, Schema.Schema.Type<Failure>, R>
): ToolDefinition<Exclude<R, Scope.Scope>> =>
  implement(
    tool,
    {
      decode: decodeInput<Schema.Schema.Type<Params>, unknown, never>(tool.name, tool.parametersSchema),
      encode: Schema.encodeUnknown(tool.successSchema, { errors: "all" })
    },
    options
  )

/** Runs an effect with these services instead of its caller's, within its caller's span. */
const within =
  <Services>(services: Context.Context<Services>) =>
  <A, E>(effect: Effect.Effect<A, E, Services>): Effect.Effect<A, E> =>
    Effect.mapInputContext(effect, (caller: Context.Context<never>) => {
      const all = Context.merge(caller, services)
      return Option.match(Context.getOption(caller, Tracer.ParentSpan), {
        onNone: () => all,
        onSome: (span) => Context.add(all, Tracer.ParentSpan, span)
      })
    })

export const provide = <R>(definition: ToolDefinition<R>, services: Context.Context<R>): ToolDefinition => ({
  ...definition,
  execute: (input, call) => within(services)(definition.execute(input, call))
})

/** `never` if the provider runs a tool of the toolkit itself: such a tool has no handler. */
export type RunHere<Tools extends Record<string, Tool.Any>> = {
  [Name in keyof Tools]: Tool.RequiresHandler<Tools[Name]>
}[keyof Tools] extends true
  ? unknown
  : never

/** The tools of an `@effect/ai` toolkit, with their handlers from the context. */
export const fromToolkit = <Tools extends Record<string, Tool.Any>>(
  toolkit: Toolkit.Toolkit<Tools> & RunHere<Tools>
): Effect.Effect<
  ReadonlyArray<ToolDefinition<Tool.Requirements<Tools[keyof Tools]>>>,
  never,
  Tool.HandlersFor<Tools>
> =>
  Effect.contextWith((context: Context.Context<Tool.HandlersFor<Tools>>) =>
    Object.values<Tool.Any>(toolkit.tools).map((tool) => {
      const key = Context.GenericTag<Tool.Handler<string>>(tool.id)
      const { context: services, handler } = Context.unsafeGet(context, key)
      // A toolkit erases the types of its schemas.
      type Erased = Schema.Schema<unknown, unknown, Tool.Requirements<Tools[keyof Tools]>>
      const codec = {
        decode: decodeInput(tool.name, tool.parametersSchema as unknown as Erased),
        encode: Schema.encodeUnknown(tool.successSchema as unknown as Erased, { errors: "all" })
      }
      return implement(tool, codec, { handler: (params: unknown) => within(services)(handler(params)) })
    })
  )

/** A tool whose parameters are described in JSON Schema by others. */
export interface JsonSchemaToolOptions {
  readonly name: string
  readonly description?: string
  /** A JSON schema whose root is an object, passed unchanged to the model. Its owner validates the input. */
  readonly parameters: JsonRecord
  /** The permission that decides whether the tool is offered; its name by default. */
  readonly permission?: string
  /** The tool changes no files. */
  readonly readOnly?: true
  /** What each call needs permission for. Absent: an offered tool needs no further permission (TO-16). */
  readonly authorize?: (input: JsonRecord) => ToolAuthorization
  /** Runs one call. A defect is reported to the model as `tool.execution` and logged. Interruption ends the call. */
  readonly execute: (
    input: JsonRecord,
    call: ToolCall
  ) => Effect.Effect<ToolOutput, ToolFailure | ToolDeclined | ToolStorageError>
}

/** Defines a tool from a JSON schema. Input must be an object, or its JSON; absent input is an empty object. */
export const fromJsonSchema = (options: JsonSchemaToolOptions): ToolDefinition => {
  const { authorize, execute, name } = options
  const record = (input: unknown): Effect.Effect<JsonRecord, ToolFailure> => {
    const given = objectIn(input ?? {})
    return Predicate.isReadonlyRecord(given)
      ? Effect.succeed(given)
      : fault("tool.input", `invalid input for tool "${name}": the input: expected an object`)
  }
  return {
    tool: jsonSchemaTool(options),
    permission: options.permission ?? name,
    ...(options.readOnly === undefined ? {} : { readOnly: options.readOnly }),
    ...(authorize === undefined ? {} : { authorize: (input) => Effect.map(record(input), authorize) }),
    execute: (input, call) => guarded(name, call, () => Effect.flatMap(record(input), (given) => execute(given, call)))
  }
}
