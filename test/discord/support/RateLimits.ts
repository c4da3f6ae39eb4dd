/** Discord's limits: a bucket for each route and major parameter, and one for all requests of the bot. */
import { type Bucket, now, type World } from "./World.ts"

export interface Verdict {
  readonly headers: Readonly<Record<string, string>>
  /** Seconds; absent if the request may pass. */
  readonly retryAfter: number | undefined
  readonly global: boolean
}

const secondsUntil = (world: World, at: number) => Math.max(0, Math.ceil(at - now(world)) / 1000)

/** Whether the limit of all requests is used up; counts the request if not. */
const overGlobal = (world: World): boolean => {
  const { limit, window } = world.settings.global
  if (now(world) >= world.global.resetAt) world.global = { remaining: limit, resetAt: now(world) + window }
  if (world.global.remaining === 0) return true
  world.global.remaining -= 1
  return false
}

const bucketOf = (world: World, method: string, route: string, major: string): Bucket => {
  const { limit, window } = world.settings.limitOf(method, route)
  const key = `${method} ${route} ${major}`
  const known = world.buckets.get(key)
  if (known !== undefined && now(world) < known.resetAt) return known
  const fresh = { route: `${method} ${route}`, remaining: limit, resetAt: now(world) + window }
  world.buckets.set(key, fresh)
  return fresh
}

/** Counts a request. Answers to interactions are exempt from the limit of all requests. */
export const count = (
  world: World,
  { exempt, major, method, route }: { method: string; route: string; major: string; exempt: boolean }
): Verdict => {
  const { limit } = world.settings.limitOf(method, route)
  const bucket = bucketOf(world, method, route, major)
  const global = !exempt && overGlobal(world)
  const over = global || bucket.remaining === 0
  if (over) world.limited.push({ at: now(world), route: bucket.route, global })
  else bucket.remaining -= 1
  const retryAfter = over ? secondsUntil(world, global ? world.global.resetAt : bucket.resetAt) : undefined
  return {
    retryAfter,
    global,
    headers: {
      "x-ratelimit-bucket": Buffer.from(bucket.route).toString("hex").slice(0, 40),
      "x-ratelimit-limit": String(limit),
      "x-ratelimit-remaining": String(bucket.remaining),
      "x-ratelimit-reset": String(bucket.resetAt / 1000),
      "x-ratelimit-reset-after": String(secondsUntil(world, bucket.resetAt)),
      ...(retryAfter === undefined
        ? {}
        : {
            "retry-after": String(Math.ceil(retryAfter)),
            "x-ratelimit-scope": global ? "global" : "user",
            ...(global ? { "x-ratelimit-global": "true" } : {})
          })
    }
  }
}
