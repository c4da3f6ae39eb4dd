/** A session of many events; test/long/LongSession.browser.test.ts has one of 100,000. */
import { beforeAll, describe, layer } from "@effect/vitest"
import type { Browser } from "playwright-core"
import { sharedBrowser } from "../watch/support/Chromium.ts"
import { isBounded } from "./support/LongSession.ts"
import * as ServedInspector from "./support/ServedInspector.ts"
import { lacks } from "../support/Parts.ts"

let browser: Browser
beforeAll(async () => {
  browser = await sharedBrowser()
})

describe.skipIf(lacks("chromium"))("a long session", () => {
  layer(ServedInspector.layer(), { excludeTestServices: true, timeout: 120_000 })((it) => {
    it.scoped(
      "IP-17: 5,000 events need few pages before they are shown, few rows in the document, and bounded memory",
      () => isBounded(browser, 5_000),
      120_000
    )
  })
})
