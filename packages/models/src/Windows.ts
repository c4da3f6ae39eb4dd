/**
 * Completes the facts about models with the windows that their servers state, so that sessions on one's own server are
 * compacted in time. Spec: MD-734.
 */
import { Cache, Data, Duration, Effect, Exit } from "effect"
import type { ModelInfo } from "@daybook/core/model/ModelResolver"
import * as Listing from "./Listing.ts"
import type { Options } from "./Providers.ts"
import { isServer } from "./Servers.ts"

/** A server that did not state a window is asked again after this time. */
const unknownFor = Duration.minutes(5)

const ask = (options: Options, providerID: string, model: string): Effect.Effect<number | undefined> => {
  const provider = Object.hasOwn(options.providers, providerID) ? options.providers[providerID] : undefined
  // The protocols' own servers state no windows.
  const isOwn = provider !== undefined && isServer(provider) && provider.baseUrl !== undefined
  const target = isOwn ? Listing.targetOf(providerID, provider, model) : undefined
  return target === undefined ? Effect.succeed(undefined) : Listing.contextOf(target, model)
}

/** Returns a function that adds the window of the model's server, if no other window is known. */
export const make = Effect.fn("Windows.make")(function* (options: Options) {
  const windows = yield* Cache.makeWith({
    capacity: 64,
    timeToLive: (exit: Exit.Exit<number | undefined>) =>
      Exit.isSuccess(exit) && exit.value !== undefined ? Duration.infinity : unknownFor,
    lookup: ({ id, providerID }: { readonly id: string; readonly providerID: string }) => ask(options, providerID, id)
  })
  return (info: ModelInfo): Effect.Effect<ModelInfo> =>
    info.contextTokens > 0
      ? Effect.succeed(info)
      : Effect.map(
          windows.get(Data.struct({ id: info.ref.id, providerID: info.ref.providerID })),
          (contextTokens = 0) => ({
            ...info,
            contextTokens
          })
        )
})
