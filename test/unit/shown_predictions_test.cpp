// evaluation.json: curves as shares, fits, and the worst records, as the page reads them back.
#include "lockstep/report/page/report_page.h"

#include "lockstep/base/errors.h"
#include "lockstep/base/json.h"
#include "support/common.h"

namespace lockstep::shown_predictions_test {

using Json = nlohmann::ordered_json;

// "" without a picture.
std::string pixels_of(const Json& shown, std::size_t record) {
  const Json& worst = shown.at("worst").at(record);
  return worst.contains("picture") ? worst.at("picture").at("pixels").get<std::string>() : "";
}

EvaluationDetails details() {
  EvaluationDetails details{.split = Split::kValidation, .samples = 1234, .classes = {"no", "yes"}};
  details.curves = {{.of_class = 1,
                     .positives = 3,
                     .negatives = 4,
                     .points = {{0.875, 2, 0}, {0.5, 2, 1}, {0.123456789, 3, 4}},
                     .area = 0.8125}};
  details.fits = {{.sample = {{1, 1.5}, {2.00000049, -3}}, .width = 2.5, .residuals = {1, 0, 1}}};
  details.columns = {"size"};
  details.worst = {
      {.record = {.loss = std::numeric_limits<double>::infinity(), .target = "no", .prediction = "yes"},
       .position = 17,
       .of_record = 3,
       .file = "a.csv",
       .cells = {"5"}},
      {.record = {.loss = 2.5, .target = "yes", .prediction = "no"}, .position = 0}};
  return details;
}

TEST(ShownPredictions, HaveTheSharesOfEachThreshold) {
  const auto json = parse_json<nlohmann::json>(to_json(details()));
  const nlohmann::json& curve = json["curves"][0];
  EXPECT_EQ(curve["class"], "1 (yes)");
  EXPECT_EQ(curve["positives"], 3);
  EXPECT_EQ(curve["negatives"], 4);
  EXPECT_EQ(curve["threshold"], nlohmann::json({0.875, 0.5, 0.12346}));
  EXPECT_EQ(curve["recall"], nlohmann::json({0.66667, 0.66667, 1.0}));
  EXPECT_EQ(curve["false_positive_rate"], nlohmann::json({0.0, 0.25, 1.0}));
  EXPECT_EQ(curve["precision"], nlohmann::json({1.0, 0.66667, 0.42857}));
  EXPECT_EQ(curve["area"], 0.8125);
  EXPECT_EQ(json["fits"][0]["target"], nlohmann::json({1.0, 2.0}));
  EXPECT_EQ(json["fits"][0]["prediction"], nlohmann::json({1.5, -3.0}));
  EXPECT_EQ(json["fits"][0]["residual_width"], 2.5);
  EXPECT_TRUE(json["worst"][0]["loss"].is_null());
  EXPECT_EQ(json["worst"][0]["record"], 17);
  EXPECT_EQ(json["worst"][0]["position"], 3);
  EXPECT_FALSE(json["worst"][1].contains("position"));
}

// Several outputs of yes or no are no classes: each has the name of its label.
TEST(ShownPredictions, OfSeveralOutputsHaveTheNamesOfTheLabels) {
  EvaluationDetails several = details();
  several.classes = {};
  several.outputs = {"hot", "wet"};
  EXPECT_EQ(parse_json<nlohmann::json>(to_json(several))["curves"][0]["class"], "wet");
}

TEST(ShownPredictions, AreReadAsTheyWereWritten) {
  const Json shown = read_shown_predictions(to_json(details()));
  EXPECT_EQ(shown["split"], "validation");
  EXPECT_EQ(shown["samples"], 1234);
  ASSERT_EQ(shown["curves"].size(), 1U);
  EXPECT_EQ(shown["curves"][0]["class"], "1 (yes)");
  EXPECT_EQ(shown["curves"][0]["recall"], Json({0.66667, 0.66667, 1}));
  EXPECT_EQ(shown["curves"][0]["false_positive_rate"], Json({0, 0.25, 1}));
  EXPECT_EQ(shown["curves"][0]["precision"], Json({1, 0.66667, 0.42857}));
  ASSERT_EQ(shown["fits"].size(), 1U);
  EXPECT_EQ(shown["fits"][0]["samples"], 2);
  EXPECT_EQ(shown["fits"][0]["target"], Json({1, 2}));
  EXPECT_EQ(shown["fits"][0]["prediction"], Json({1.5, -3}));
  EXPECT_EQ(shown["fits"][0]["residual_width"], 2.5);
  EXPECT_EQ(shown["fits"][0]["residuals"], Json({1, 0, 1}));
  EXPECT_EQ(shown["columns"], Json({"size"}));
  ASSERT_EQ(shown["worst"].size(), 2U);
  EXPECT_TRUE(shown["worst"][0]["loss"].is_null());
  EXPECT_EQ(shown["worst"][0]["record"], 17);
  EXPECT_EQ(shown["worst"][0]["file"], "a.csv");
  EXPECT_EQ(shown["worst"][0]["cells"], Json({"5"}));
  EXPECT_EQ(shown["worst"][1]["loss"], 2.5);
  EXPECT_EQ(shown["worst"][1]["target"], "yes");
  EXPECT_EQ(shown["worst"][1]["prediction"], "no");
}

TEST(ShownPredictions, HaveTheWindowsOfAForecast) {
  EvaluationDetails of_windows = details();
  of_windows.windows = {{.name = "north",
                         .times = {"Mon", "Tue", "Wed"},
                         .past = {1.00000049},
                         .truth = {2, 3},
                         .forecast = {2.5, 4},
                         .low = {2.5, 4},
                         .high = {2.5, 4}}};
  of_windows.windows.push_back(of_windows.windows[0]);
  of_windows.windows[1].low = {0, 1};
  const Json shown = read_shown_predictions(to_json(of_windows));
  ASSERT_EQ(shown["windows"].size(), 2U);
  EXPECT_EQ(shown["windows"][0], Json::parse(R"({"name":"north","times":["Mon","Tue","Wed"],"past":[1],)"
                                             R"("truth":[2,3],"forecast":[2.5,4]})"));
  EXPECT_EQ(shown["windows"][1]["low"], Json({0, 1}));
  EXPECT_EQ(shown["windows"][1]["high"], Json({2.5, 4}));
  of_windows.windows[1].high.pop_back();
  EXPECT_THROW(read_shown_predictions(to_json(of_windows)), DataError);
}

TEST(ShownPredictions, HoldPicturesAsBytes) {
  EvaluationDetails images = details();
  images.shape = Shape{{4, 4, 1}};
  images.worst[0].pixels = {0, 1, 0.5F, 0.25F, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.75F};
  images.worst[1].pixels = {-1, 3, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  Json shown = read_shown_predictions(to_json(images));
  ASSERT_EQ(shown["worst"].size(), 2U);
  EXPECT_EQ(shown["worst"][0]["picture"]["width"], 4);
  EXPECT_EQ(shown["worst"][0]["picture"]["height"], 4);
  EXPECT_EQ(shown["worst"][0]["picture"]["channels"], 1);
  EXPECT_EQ(pixels_of(shown, 0), "AP+AQAAAAAAAAAAAAAAAvw==");
  EXPECT_TRUE(pixels_of(shown, 1).starts_with("AP+A")) << "from the least to the greatest";
  // Of a large image with four channels each third pixel, in three of them.
  images.shape = Shape{{144, 96, 4}};
  images.worst[0].pixels.assign(144 * 96 * 4, 0);
  images.worst[1].pixels.clear();
  for (std::size_t i : {std::size_t{1}, std::size_t{12}}) images.worst[0].pixels[i] = 1;
  shown = read_shown_predictions(to_json(images));
  EXPECT_EQ(shown["worst"][0]["picture"]["width"], 32);
  EXPECT_EQ(shown["worst"][0]["picture"]["height"], 48);
  EXPECT_EQ(shown["worst"][0]["picture"]["channels"], 3);
  EXPECT_EQ(pixels_of(shown, 0).size(), std::size_t{32} * 48 * 4);
  EXPECT_TRUE(pixels_of(shown, 0).starts_with("AP8A/wAAAAAA")) << pixels_of(shown, 0);
  EXPECT_FALSE(shown["worst"][1].contains("picture"));
}

// A file that a page cannot trust: pictures with other bytes than their size says.
TEST(ShownPredictions, LeavePicturesOutThatAreNone) {
  const std::string right = R"({"width":2,"height":1,"channels":1,"pixels":"AP8="})";
  for (const std::string& picture :
       {right, std::string(R"({"width":3,"height":1,"channels":1,"pixels":"AP8="})"),
        std::string(R"({"width":2,"height":1,"channels":2,"pixels":"AP8AAA=="})"),
        std::string(R"({"width":0,"height":1,"channels":1,"pixels":""})"),
        std::string(R"({"width":2,"height":1,"channels":1,"pixels":"A<8="})"),
        std::string(R"({"width":1000000000,"height":1000000000,"channels":3,"pixels":"AP8="})")}) {
    const Json shown = read_shown_predictions(
        R"({"split":"test","samples":1,"worst":[{"loss":1,"record":0,"file":"","target":"a",)"
        R"("prediction":"b","picture":)" +
        picture + "}]}");
    EXPECT_EQ(pixels_of(shown, 0), picture == right ? "AP8=" : "") << picture;
  }
}

// Without one kind of samples there is no area, and the shares of what is not there are 0.
TEST(ShownPredictions, OfOneKindHaveNoArea) {
  EvaluationDetails one = details();
  one.curves[0].positives = 0;
  one.curves[0].area = std::numeric_limits<double>::quiet_NaN();
  one.curves[0].points = {{0.5, 0, 2}, {0.25, 0, 4}};
  const Json shown = read_shown_predictions(to_json(one));
  EXPECT_TRUE(shown["curves"][0]["area"].is_null());
  EXPECT_EQ(shown["curves"][0]["recall"], Json({0, 0}));
  EXPECT_EQ(shown["curves"][0]["false_positive_rate"], Json({0.5, 1}));
  EXPECT_EQ(shown["curves"][0]["precision"], Json({0, 0}));
}

TEST(ShownPredictions, OfAnotherFormAreRefused) {
  for (const char* text :
       {"[]", "{}", R"({"split":"test","samples":3})",
        R"({"split":"test","samples":3,"worst":[],"curves":[{"class":"a","area":1}]})",
        R"({"split":"test","samples":3,"worst":[],"windows":[{"name":"a","times":["b"],"past":[null],)"
        R"("truth":[],"forecast":[]}]})",
        R"({"split":"test","samples":3,"worst":[],"fits":[{"target":[1],"prediction":[],)"
        R"("residual_width":1,"residuals":[]}]})"})
    EXPECT_THROW(read_shown_predictions(text), DataError) << text;
}

}  // namespace lockstep::shown_predictions_test
