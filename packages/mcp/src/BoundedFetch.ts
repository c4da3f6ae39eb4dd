/** Fetches from an untrusted MCP server: within its origin, with bounded messages. Spec: MC-4, LM-1, LM-10. */
import { boundedBody } from "@daybook/core/http/BoundedBody"
import { safeFetch } from "@daybook/core/http/SameOrigin"
import { maxBodyBytes, maxEventBytes } from "@daybook/core/support/Limits"

/** An event stream may stay open for ever, so only its events are bounded. */
const limits = { body: maxBodyBytes.mcp, event: maxEventBytes.mcp }

export const boundedFetch = async (url: string | URL, init?: RequestInit): Promise<Response> =>
  boundedBody(await safeFetch(url, init), limits)
