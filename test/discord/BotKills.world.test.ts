/** The bot's promise under kills; test/long/BotKills.test.ts repeats it with many more. */
import { it } from "@effect/vitest"
import { survives } from "./support/BotKills.ts"

it.live(
  "DI-12: after 20 kills under lost replies and redelivery every answer is shown once, whole and in order, and every message admitted once",
  () => survives({ kills: Number(process.env["DAYBOOK_RUNS"] ?? 20), seed: Number(process.env["DAYBOOK_SEED"] ?? 16) }),
  600_000
)
