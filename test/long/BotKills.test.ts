/** The kills of test/discord/BotKills.world.test.ts, many times. DAYBOOK_RUNS and DAYBOOK_SEED choose. */
import { describe, it } from "@effect/vitest"
import { Effect, Random } from "effect"
import { survives } from "../discord/support/BotKills.ts"

const kills = Number(process.env["DAYBOOK_RUNS"] ?? 500)

const seeded = (shift: number) =>
  Effect.flatMap(Random.nextIntBetween(0, 2 ** 31), (seed) =>
    survives({ kills, shift, seed: Number(process.env["DAYBOOK_SEED"] ?? seed) })
  )

describe("the bot is killed many times", () => {
  it.live("DI-12: every answer is shown once, whole and in order, and every message admitted once", () => seeded(0))

  it.live("DI-12: so it is where Discord's clock moves beyond the nonce window before each restart", () =>
    seeded(10 * 60_000)
  )
})
