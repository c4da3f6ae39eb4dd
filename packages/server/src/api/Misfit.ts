/** Says for people which arguments do not fit; the library prints their whole schemas. Spec: HT-3, HT-10 in specs/http.md. */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import { HttpApiDecodeError } from "@effect/platform/HttpApiError"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Cause, Effect, Option, Schema } from "effect"
import { byField, sentences } from "@daybook/log/support/Issues"

const encode = Schema.encodeSync(HttpApiDecodeError)

const refused = ({ issues }: HttpApiDecodeError): HttpServerResponse.HttpServerResponse => {
  const plain = new HttpApiDecodeError({ issues: byField(issues), message: sentences(issues, "the body") })
  return HttpServerResponse.unsafeJson(encode(plain), { status: 400 })
}

/** Answers requests whose arguments do not fit. */
export const layer = HttpApiBuilder.middleware((app) =>
  Effect.catchAllCause(app, (cause) => {
    const error: unknown = Option.getOrUndefined(Cause.failureOption(cause))
    return error instanceof HttpApiDecodeError ? Effect.succeed(refused(error)) : Effect.failCause(cause)
  })
)
