/** The inspector with a session of 100,000 events. */
import { beforeAll, describe, layer } from "@effect/vitest"
import type { Browser } from "playwright-core"
import { isBounded, isShownAsSoon } from "../inspector/support/LongSession.ts"
import * as ServedInspector from "../inspector/support/ServedInspector.ts"
import { sharedBrowser } from "../watch/support/Chromium.ts"
import { lacks } from "../support/Parts.ts"

const events = 100_000

let browser: Browser
beforeAll(async () => {
  browser = await sharedBrowser()
})

describe.skipIf(lacks("chromium"))("a long session", () => {
  layer(ServedInspector.layer(), { excludeTestServices: true, timeout: 120_000 })((it) => {
    it.scoped(
      "IP-17: 100,000 events need few pages before they are shown, few rows in the document, and bounded memory",
      () => isBounded(browser, events),
      120_000
    )

    it.scoped(
      "IP-17: the first view of 100,000 events is there as soon as that of 1,000",
      () => isShownAsSoon(browser, events),
      120_000
    )
  })
})
