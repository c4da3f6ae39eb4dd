/**
 * Builds the next request from a session and its observed context: tools and settings of the agent and the current
 * prompt, host hooks, and the pure assembly in `request/Request.ts`. Writes nothing. Spec: RQ-1..RQ-7, RQ-30..RQ-33 in
 * specs/context.md.
 */
import { Effect, Struct } from "effect"
import type { MessageID, SessionID } from "@daybook/log/domain/Identifiers"
import type { Message, Session } from "@daybook/log/domain/Message"
import type { ModelRef, Wishes } from "@daybook/log/domain/Values"
import type { OwnerToken } from "@daybook/log/log/EventLog"
import type { CompactionRequest } from "../compaction/Plan.ts"
import type { Epoch } from "../context/ContextEpoch.ts"
import type { Agent, RequestSettings } from "../domain/Agent.ts"
import { type ModelInfo, ModelResolver, type ResolvedModel } from "../model/ModelResolver.ts"
import { HostRequests } from "../request/HostRequests.ts"
import { assemble, type AssembledRequest, systemTexts } from "../request/Request.ts"
import { framed, hashOf, type RequestFrame } from "../request/RequestFrame.ts"
import { definition, type OutputState } from "../request/StructuredOutput.ts"
import { HostTools } from "../tool/HostTools.ts"
import { type MaterializedTools, ToolRegistry } from "../tool/ToolRegistry.ts"
import { spanned } from "@daybook/log/support/Spans"
import { putNewest } from "@daybook/log/support/Newest"

// Decides when a request's frame is recorded: whole, or as its difference to a recent frame of this process.

/** Maximum number of sessions in the cache. */
const keptFrames = 64

export const makeRequestFrames = () => {
  const kept = new Map<SessionID, { readonly hash: string; readonly frame: RequestFrame }>()
  /** The event for this request's frame; empty when the previous request had the same frame and baseline. */
  return ({ frame: stored, id }: Pick<Session, "frame" | "id">, frame: RequestFrame, epoch: Epoch) => {
    const hash = hashOf(frame)
    const before = kept.get(id)
    putNewest(kept, id, { hash, frame }, keptFrames)
    const baseline = epoch.state === "new" ? epoch : undefined
    return hash === stored && baseline === undefined
      ? []
      : [framed(frame, hash, before !== undefined && before.hash === stored ? before.frame : undefined, baseline)]
  }
}

export interface PreparationInput {
  readonly session: Session
  readonly agent: Agent
  readonly info: ModelInfo
  readonly baseline: string
  readonly baselineSeq: number
  readonly messages: ReadonlyArray<Message>
  /** Request options from the activity's prompts. */
  readonly wishes: Wishes
  /** Where the structured-output tool records its result. */
  readonly output: OutputState
  /** Tool results were pruned since the last step. */
  readonly prunedSince?: boolean
}

export interface Prepared {
  readonly model: ResolvedModel
  readonly settings: RequestSettings
  readonly tools: MaterializedTools
  readonly request: AssembledRequest
}

/** A prepared request, for compaction. */
export interface CompactableInput {
  readonly owner: OwnerToken
  readonly session: Session
  readonly agent: Agent
  readonly prepared: Prepared
  readonly messages: ReadonlyArray<Message>
  /** The prompts that opened the work. */
  readonly opening: ReadonlyArray<MessageID>
}

/** The session's settings without stop sequences, which could cut a summary short. */
const forSummary = (settings: RequestSettings): RequestSettings => Struct.omit(settings, "stop")

const isEmpty = (settings: RequestSettings): boolean => Object.keys(settings).length === 0

/**
 * The model of a session's requests: the session's model, else the agent's, else the resolver's default (undefined).
 */
export const modelOf = (session: Session, agent: Agent): ModelRef | undefined => session.model ?? agent.model

export const make = Effect.gen(function* () {
  const models = yield* ModelResolver
  const tools = yield* ToolRegistry
  const hooks = yield* HostRequests
  const host = yield* HostTools

  const resolve = (ref: ModelRef | undefined, settings: RequestSettings) =>
    isEmpty(settings) ? models.resolve(ref) : models.resolve(ref, settings)

  const prepare = spanned(
    "Preparation.prepare",
    Effect.fnUntraced(function* (input: PreparationInput) {
      const { agent, baseline, baselineSeq, info, messages, output, session, wishes } = input
      const { settings, system } = yield* hooks.onRequest(
        { system: systemTexts(agent, info.ref, session.instructions, baseline), settings: agent.settings ?? {} },
        { sessionID: session.id, agent, model: info }
      )
      const model = yield* resolve(modelOf(session, agent), settings)
      // Waits for MCP servers that are still connecting, so that the tool list is stable between turns (MC-542).
      yield* host.ready
      const format = wishes.output
      const materialized = yield* tools.materialize(agent, {
        overrides: wishes.tools,
        extra: format === undefined ? [] : [definition(format, output)]
      })
      const request = assemble({
        info: model.info,
        system,
        baselineSeq,
        messages,
        prunedSeq: session.prunedSeq,
        tools: materialized.definitions,
        toolChoice: format === undefined ? "auto" : "required",
        settings,
        countTokens: model.countTokens,
        prunedSince: input.prunedSince === true
      })
      return { model, settings, tools: materialized, request }
    })
  )

  /** The request as compaction sees it. */
  const compactable = (input: CompactableInput): CompactionRequest => {
    const { agent, messages, opening, owner, session } = input
    const { model, request, settings } = input.prepared
    return {
      sessionID: session.id,
      owner,
      model,
      summarizer: (maxOutputTokens) =>
        // The model was resolved before; if it is gone now, use the instance at hand.
        Effect.orElseSucceed(
          resolve(modelOf(session, agent), { ...forSummary(settings), maxOutputTokens }),
          () => model
        ),
      requestedOutput: settings.maxOutputTokens,
      messages,
      prunedSeq: session.prunedSeq,
      opening,
      tokens: request.tokens
    }
  }

  return { prepare, resolve, compactable }
})

export type Preparation = Effect.Effect.Success<typeof make>
