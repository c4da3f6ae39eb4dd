/** Real browsers for tests of the live page: one Chromium for each worker, a context of its own for each page. */
import { type Browser, chromium, type Page } from "playwright-core"
import { Effect, type Scope } from "effect"

const executablePath = "/usr/bin/chromium"

let launched: Promise<Browser> | undefined

/** The browser of all test files of this worker. It ends with the worker. */
export const sharedBrowser = (): Promise<Browser> =>
  (launched ??= chromium.launch({
    executablePath,
    args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--disable-smooth-scrolling"]
  }))

export interface Visit {
  readonly page: Page
  /** What went wrong in the page: errors, violations of the policy, failed requests. */
  readonly faults: ReadonlyArray<string>
  /** The addresses of all requests, without their queries. */
  readonly requests: ReadonlyArray<string>
}

export type VisitOptions = Parameters<Browser["newContext"]>[0]

/** Opens a page that is closed with the scope. */
export const visit = (
  browser: Browser,
  url: string,
  options: VisitOptions = {}
): Effect.Effect<Visit, never, Scope.Scope> =>
  Effect.gen(function* () {
    const context = yield* Effect.acquireRelease(
      Effect.promise(() => browser.newContext({ viewport: { width: 1_200, height: 700 }, ...options })),
      (context) => Effect.promise(() => context.close())
    )
    const page = yield* Effect.promise(() => context.newPage())
    page.setDefaultTimeout(40_000)
    const [faults, requests]: [Array<string>, Array<string>] = [[], []]
    page.on("pageerror", ({ message }) => faults.push(message))
    page.on("console", (message) => {
      if (message.type() === "error") faults.push(message.text())
    })
    page.on("request", (request) => requests.push(request.url().split("?", 1)[0] ?? ""))
    yield* Effect.promise(() => page.goto(url))
    return { page, faults, requests }
  })
