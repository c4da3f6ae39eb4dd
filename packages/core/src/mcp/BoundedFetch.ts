/** Fetches from an untrusted MCP server: within its origin, with bounded messages. Spec: MC-4, LM-1, LM-10. */
import { boundedBody } from "../http/BoundedBody.ts"
import { safeFetch } from "../http/SameOrigin.ts"
import { maxBodyBytes, maxEventBytes } from "../Limits.ts"

/** An event stream may stay open for ever, so only its events are bounded. */
const limits = { body: maxBodyBytes.mcp, event: maxEventBytes.mcp }

export const boundedFetch = async (url: string | URL, init?: RequestInit): Promise<Response> =>
  boundedBody(await safeFetch(url, init), limits)
