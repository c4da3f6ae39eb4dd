/**
 * The public exports of `@daybook/models`: the catalogue, the resolver, the offline model, and the bridge to the AI
 * SDK.
 *
 * @module @daybook/models
 */
export * as AiSdkLanguageModel from "./AiSdkLanguageModel.ts"
export * as Catalog from "./Catalog.ts"
export * as Listing from "./Listing.ts"
export * as Models from "./Models.ts"
export * as OfflineModel from "./OfflineModel.ts"
export * as Policy from "./Policy.ts"
export * as Servers from "./Servers.ts"
