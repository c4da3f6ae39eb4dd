/**
 * Runs hooks of hosts and plugins on the expansion of each prompt before its admission, and on the system texts,
 * parameters and headers of each request. Expansions are stored with the prompt, and frames when they change, so every
 * effect of a hook can be shown again. Spec: RQ-50..RQ-53.
 */
import { Context, Effect, Layer, type Scope } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { Session } from "@daybook/log/domain/Message"
import type { Expansion, PromptInput } from "@daybook/log/domain/Values"
import type { Agent, RequestSettings } from "../domain/Agent.ts"
import type { ModelInfo } from "../model/ModelResolver.ts"

/** The part of a request that hooks see and change. */
export interface HostRequest {
  readonly system: ReadonlyArray<string>
  readonly settings: RequestSettings
}

/** A host's hook. A hook that fails, or takes more than 10 seconds, is logged and changes nothing. */
export interface RequestHook {
  /** Used in logs. */
  readonly name: string
  /** Changes a prompt's expansion. The prompt itself stays, so that an exact retry still matches (IN-4). */
  readonly prompt?: (session: Session, prompt: PromptInput, expansion: Expansion) => Effect.Effect<Expansion, unknown>
  /** Changes the system texts and settings of one request. Varying texts defeat the provider's cache. */
  readonly request?: (
    request: HostRequest,
    turn: { readonly sessionID: SessionID; readonly agent: Agent; readonly model: ModelInfo }
  ) => Effect.Effect<HostRequest, unknown>
}

/** What `HostRequests` offers. */
export interface Service {
  /** Adds a hook until the scope closes. Hooks run in registration order. */
  readonly register: (hook: RequestHook) => Effect.Effect<void, never, Scope.Scope>
  /** Whether a hook reads prompts. */
  readonly readsPrompts: () => boolean
  readonly onPrompt: (
    session: Session,
    prompt: PromptInput,
    expansion: Expansion | undefined
  ) => Effect.Effect<Expansion | undefined>
  readonly onRequest: (
    request: HostRequest,
    turn: { readonly sessionID: SessionID; readonly agent: Agent; readonly model: ModelInfo }
  ) => Effect.Effect<HostRequest>
}

/**
 * The registered request hooks; they run for every Location (RQ-50..RQ-53).
 *
 * @example
 * ```ts
 * import { HostRequests } from "@daybook/core"
 * import { Effect, Layer } from "effect"
 *
 * // Says which model each request goes to, as long as the layer lives.
 * export const logging = Layer.scopedDiscard(
 *   Effect.flatMap(HostRequests.HostRequests, (requests) =>
 *     requests.register({
 *       name: "acme",
 *       request: (request, { model }) => Effect.as(Effect.log(model), request)
 *     })
 *   )
 * )
 * ```
 */
export class HostRequests extends Context.Tag("@daybook/core/HostRequests")<HostRequests, Service>() {}

/** Admissions and turns wait for hooks. */
const hookLimit = "10 seconds"

const make = (): Context.Tag.Service<typeof HostRequests> => {
  const hooks = new Set<RequestHook>()

  const unless = <A>(hook: RequestHook, before: A, change: () => Effect.Effect<A, unknown>): Effect.Effect<A> =>
    Effect.catchAllCause(Effect.timeout(Effect.interruptible(Effect.suspend(change)), hookLimit), (cause) =>
      Effect.as(Effect.logWarning(`hook ${hook.name} failed; its change is ignored`, cause), before)
    )

  return {
    readsPrompts: () => [...hooks].some(({ prompt }) => prompt !== undefined),
    register: (hook) =>
      Effect.acquireRelease(
        Effect.sync(() => void hooks.add(hook)),
        () => Effect.sync(() => hooks.delete(hook))
      ),
    onPrompt: Effect.fnUntraced(function* (session, prompt, expansion) {
      let [current, changed] = [expansion ?? { parts: [] }, expansion !== undefined]
      for (const hook of hooks) {
        const change = hook.prompt
        if (change === undefined) continue
        const before = current
        const next: Expansion = yield* unless(hook, before, () => change(session, prompt, before))
        changed ||= next !== current
        current = next
      }
      return changed ? current : undefined
    }),
    onRequest: Effect.fnUntraced(function* (request, turn) {
      let current = request
      for (const hook of hooks) {
        const [before, change] = [current, hook.request]
        if (change !== undefined) current = yield* unless(hook, before, () => change(before, turn))
      }
      return current
    })
  }
}

/** A registry that starts without hooks. */
export const layer = Layer.sync(HostRequests, make)
