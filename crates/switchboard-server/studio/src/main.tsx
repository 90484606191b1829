import { render } from "preact";
import { initToken } from "./api/client";
import { App } from "./app";
import { initRouter } from "./state/router";
import { connect } from "./state/server";
import "./styles/base.css";
import "./styles/layout.css";
import "./styles/conversation.css";
import "./styles/inspector.css";
import "./styles/file.css";

initToken();
initRouter();
render(<App />, document.getElementById("app")!);
void connect();
