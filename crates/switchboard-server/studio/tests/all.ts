import "./diff.test";
import "./heights.test";
import "./live.test";
import "./markdown.test";
import "./path.test";
import "./small.test";
