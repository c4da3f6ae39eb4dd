/** Merges the fault policies of a host, a provider and a model. The runtime applies the result. Spec: MD-8. */
import { Duration } from "effect"
import type { ModelPolicy } from "@daybook/core/model/ModelResolver"
import { defaultRetry } from "@daybook/core/model/ProviderStream"
import { present } from "@daybook/log/support/Optional"

/** A policy as a host writes it: an absent field inherits, `false` disables. */
export interface PolicySettings {
  /** Maximum duration of a whole request. */
  readonly timeout?: Duration.DurationInput | false
  /** Maximum silence between two parts of an answer. */
  readonly inactivity?: Duration.DurationInput | false
  /** Retries of a failed request, and the delay before each. */
  readonly retry?:
    | {
        readonly times: number
        readonly baseDelay?: Duration.DurationInput
        readonly maxDelay?: Duration.DurationInput
        /** Longest delay accepted from a provider; a longer one fails the request. */
        readonly maxRetryAfter?: Duration.DurationInput
      }
    | false
}

/** For providers over HTTP: retries that outlast an overload; no time limit, because long thinking is not a fault. */
export const standard: ModelPolicy = { retry: defaultRetry }

/** Merges settings into a policy, field by field; the last one wins. */
export const apply = (policy: ModelPolicy, ...layers: ReadonlyArray<PolicySettings | undefined>): ModelPolicy =>
  layers.reduce<ModelPolicy>(
    (under, { inactivity, retry, timeout } = {}) =>
      present({
        timeout: limit(under.timeout, timeout),
        inactivity: limit(under.inactivity, inactivity),
        retry: retryOf(under.retry, retry)
      }),
    policy
  )

const limit = (
  under: Duration.Duration | undefined,
  over: Duration.DurationInput | false | undefined
): Duration.Duration | undefined => (over === undefined ? under : over === false ? undefined : Duration.decode(over))

const retryOf = (under: ModelPolicy["retry"], over: PolicySettings["retry"]): ModelPolicy["retry"] => {
  if (over === undefined) return under
  if (over === false || over.times <= 0) return undefined
  const { baseDelay, maxDelay } = under ?? defaultRetry
  return present({
    times: Math.floor(over.times),
    baseDelay: Duration.decode(over.baseDelay ?? baseDelay),
    maxDelay: Duration.decode(over.maxDelay ?? maxDelay),
    maxRetryAfter: limit(under?.maxRetryAfter, over.maxRetryAfter)
  })
}
