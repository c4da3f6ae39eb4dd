/**
 * Assembles one provider request from a session's data, in the order in which the model reads it. Pure; the runner
 * observes, stores and sends. Spec: RQ-1..RQ-7 in specs/context.md.
 */
import * as Prompt from "@effect/ai/Prompt"
import * as Tool from "@effect/ai/Tool"
import { Predicate, Schema } from "effect"
import type { Message } from "@daybook/log/domain/Message"
import { type JsonRecord, type ModelRef, sameModel } from "@daybook/log/domain/Values"
import { baseInstructions } from "../agent/BuiltinAgents.ts"
import type { Agent, RequestSettings } from "../domain/Agent.ts"
import type { ModelInfo } from "../model/ModelResolver.ts"
import { isBlank } from "@daybook/log/support/Text"
import { conversation, type Lowered, type LoweringTarget } from "./Lowering.ts"
import { nothingPruned } from "./Prune.ts"
import type { FramedTool, RequestFrame } from "./RequestFrame.ts"
import { type CountTokens, type Estimate, estimate, type LastUsage, withUsage } from "./TokenEstimate.ts"

/** Whether the model must call a tool. */
export type ToolChoice = "auto" | "required"

export interface RequestInput {
  readonly info: ModelInfo
  /** {@link systemTexts}, possibly changed by a host hook. */
  readonly system: ReadonlyArray<string>
  readonly baselineSeq: number
  /** The session's messages that the model sees, oldest first. */
  readonly messages: ReadonlyArray<Message>
  readonly prunedSeq: number | undefined
  /** Tools in request form, sorted by name. */
  readonly tools: ReadonlyArray<Tool.Any>
  readonly toolChoice: ToolChoice
  readonly settings: RequestSettings
  readonly countTokens?: CountTokens | undefined
  /** Results were pruned since the last step, so the provider's last count is no longer a lower bound (CP-9). */
  readonly prunedSince?: boolean
}

export interface AssembledRequest {
  readonly frame: RequestFrame
  /** The conversation, after the system texts. */
  readonly messages: ReadonlyArray<Prompt.MessageEncoded>
  readonly estimate: Estimate
  /** Total tokens: the greater of the estimate, and the provider's last count plus the estimate since (CM-13). */
  readonly tokens: number
}

/** One text: a request has at most two system texts (RQ-1). */
const withInstructions = (prompt: string, instructions: string | undefined): string =>
  [prompt, instructions ?? ""].filter((text) => !isBlank(text)).join("\n\n")

/** The system texts: the agent's prompt or base instructions, the session's own instructions, the baseline. */
export const systemTexts = (agent: Agent, model: ModelRef, instructions: string | undefined, baseline: string) =>
  [withInstructions(agent.prompt ?? baseInstructions(model), instructions), baseline].filter((text) => !isBlank(text))

const framedTools = new WeakMap<Tool.Any, FramedTool>()

const record = (value: unknown): JsonRecord =>
  Predicate.isRecord(value) ? Object.fromEntries(Object.entries(value)) : {}

/** Converts a tool to its request form; the same definition returns the same object. */
const framedTool = (tool: Tool.Any): FramedTool => {
  const before = framedTools.get(tool)
  if (before !== undefined) return before
  const made: FramedTool = {
    name: tool.name,
    ...(tool.description === undefined ? {} : { description: tool.description }),
    parameters: record(Tool.getJsonSchemaFromSchemaAst(tool.parametersSchema.ast))
  }
  framedTools.set(tool, made)
  return made
}

/** The settings to record, with the context window if known. Header values may be secret and are omitted. */
const recordedSettings = (
  { headers, ...settings }: RequestSettings,
  toolChoice: ToolChoice,
  { media, pictures, systemMessages }: LoweringTarget,
  { contextTokens }: ModelInfo
): JsonRecord => ({
  ...settings,
  ...(Number.isFinite(contextTokens) && contextTokens > 0 ? { contextWindow: contextTokens } : {}),
  ...(headers === undefined ? {} : { headers: Object.keys(headers).sort() }),
  ...(toolChoice === "auto" ? {} : { toolChoice }),
  ...(systemMessages === "leading" ? {} : { systemMessages }),
  ...(media === undefined ? {} : { media: [...media] }),
  ...(pictures === undefined ? {} : { pictures })
})

export const shownFor = (info: ModelInfo, prunedSeq: number | undefined): LoweringTarget => ({
  model: info.ref,
  systemMessages: info.systemMessages ?? "leading",
  prunedSeq: prunedSeq ?? nothingPruned,
  media: info.media,
  pictures: info.pictures
})

const lastUsage = (lowered: ReadonlyArray<Lowered>, model: ModelRef): LastUsage | undefined => {
  const at = lowered.findLastIndex(({ message }) => message.type === "assistant" && message.error === undefined)
  const step = lowered[at]?.message
  if (
    step?.type !== "assistant" ||
    step.tokens === undefined ||
    step.estimated === true ||
    !sameModel(step.model, model)
  )
    return undefined
  const before = lowered.slice(0, at).reduce((count, { shown }) => count + shown.length, 0)
  return { tokens: step.tokens, messages: before + Math.min(1, lowered[at]?.shown.length ?? 0) }
}

export const assemble = (input: RequestInput): AssembledRequest => {
  const { baselineSeq, info, settings, toolChoice } = input
  const shown = shownFor(info, input.prunedSeq)
  const lowered = conversation(input.messages, shown)
  const messages = lowered.flatMap((one) => one.shown)
  const frame: RequestFrame = {
    system: input.system.filter((text) => !isBlank(text)),
    baselineSeq,
    tools: input.tools.map(framedTool),
    settings: recordedSettings(settings, toolChoice, shown, info)
  }
  const estimated = estimate({ system: frame.system, messages, tools: frame.tools }, input.countTokens)
  const usage = input.prunedSince === true ? undefined : lastUsage(lowered, info.ref)
  return { frame, messages, estimate: estimated, tokens: withUsage(estimated, usage) }
}

const decodeMessage = Schema.decodeSync(Prompt.Message)

const decodedMessages = new WeakMap<Prompt.MessageEncoded, Prompt.Message>()

const decoded = (message: Prompt.MessageEncoded): Prompt.Message => {
  const before = decodedMessages.get(message)
  if (before !== undefined) return before
  const made = decodeMessage(message)
  decodedMessages.set(message, made)
  return made
}

/** The whole request as an `@effect/ai` prompt. Messages of an earlier request are not decoded again. */
export const promptOf = ({ frame, messages }: AssembledRequest): Prompt.Prompt =>
  Prompt.fromMessages([
    ...frame.system.map((content) => Prompt.makeMessage("system", { content })),
    ...messages.map(decoded)
  ])
